//! From the parts of a message to the blocks of a prompt, as far as the agent takes them.

use agent_client_protocol_schema::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent,
    PromptCapabilities, ResourceLink, TextContent, TextResourceContents,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_protocol::{Content, Part};

use crate::workspace::{Accepts, Attachment, PartError, Workspace, read_parts};

/// The blocks of a prompt. Files are read in `workspace` alone; may block on the disk.
pub(crate) fn blocks(
    parts: &[Part],
    workspace: &Workspace,
    takes: &PromptCapabilities,
) -> Result<Vec<ContentBlock>, PartError> {
    let mut blocks = Vec::new();
    for part in parts {
        match &part.content {
            Content::Text(text) if text.is_empty() => {}
            Content::Text(text) => blocks.push(text_block(text.clone())),
            _ => read(part, workspace, takes, &mut blocks)?,
        }
    }
    Ok(blocks)
}

/// A block of plain text.
pub(crate) fn text_block(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

fn read(
    part: &Part,
    workspace: &Workspace,
    takes: &PromptCapabilities,
    blocks: &mut Vec<ContentBlock>,
) -> Result<(), PartError> {
    let accepts = Accepts { images: true, binaries: true, ..Accepts::default() };
    let prompt = read_parts(std::slice::from_ref(part), workspace, &accepts)?;
    if !prompt.text.is_empty() {
        blocks.push(text_file(part, prompt.text, takes));
    }
    blocks.extend(prompt.attachments.into_iter().map(|file| attachment(file, takes)));
    Ok(())
}

/// Text that came as a file or as data.
fn text_file(part: &Part, text: String, takes: &PromptCapabilities) -> ContentBlock {
    let uri = match &part.content {
        Content::Url(url) => url.clone(),
        Content::Raw(_) => inline_uri(&part.filename),
        Content::Text(_) | Content::Data(_) => return text_block(text),
    };
    if takes.embedded_context {
        let mut contents = TextResourceContents::new(text, uri);
        contents.mime_type = media_type(&part.media_type);
        let resource = EmbeddedResourceResource::TextResourceContents(contents);
        return ContentBlock::Resource(EmbeddedResource::new(resource));
    }
    match part.content {
        Content::Url(_) => link(&uri, part),
        _ if part.filename.is_empty() => text_block(text),
        _ => text_block(format!("{}:\n{text}", part.filename)),
    }
}

fn attachment(file: Attachment, takes: &PromptCapabilities) -> ContentBlock {
    let data = || STANDARD.encode(&file.bytes);
    let is_local = file.source.starts_with("file://");
    if takes.image && file.media_type.starts_with("image/") {
        return ContentBlock::Image(ImageContent::new(data(), file.media_type));
    }
    if takes.audio && file.media_type.starts_with("audio/") {
        return ContentBlock::Audio(AudioContent::new(data(), file.media_type));
    }
    if is_local {
        let mut link = ResourceLink::new(file.filename, file.source);
        link.mime_type = media_type(&file.media_type);
        return ContentBlock::ResourceLink(link);
    }
    if takes.embedded_context {
        let mut contents = BlobResourceContents::new(data(), inline_uri(&file.filename));
        contents.mime_type = media_type(&file.media_type);
        let resource = EmbeddedResourceResource::BlobResourceContents(contents);
        return ContentBlock::Resource(EmbeddedResource::new(resource));
    }
    text_block(file.describe())
}

fn link(uri: &str, part: &Part) -> ContentBlock {
    let last = uri.rsplit('/').find(|piece| !piece.is_empty()).unwrap_or(uri);
    let name = if part.filename.is_empty() { last } else { part.filename.as_str() };
    let mut link = ResourceLink::new(name, uri);
    link.mime_type = media_type(&part.media_type);
    ContentBlock::ResourceLink(link)
}

fn inline_uri(filename: &str) -> String {
    let name = if filename.is_empty() { "inline" } else { filename };
    format!("attachment:{}", percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC))
}

fn media_type(said: &str) -> Option<String> {
    (!said.is_empty()).then(|| said.to_owned())
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Value, codec, json};

    use super::*;
    use crate::workspace::Workspaces;

    fn told(parts: &[Part], takes: &PromptCapabilities) -> Value {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.md"), "# A").unwrap();
        std::fs::write(folder.path().join("p.png"), [1, 2, 3]).unwrap();
        let workspace = Workspaces::new(folder.path(), vec![]).unwrap().choose(None).unwrap();
        let here = workspace.path().to_str().unwrap().to_owned();
        let parts: Vec<Part> = parts
            .iter()
            .cloned()
            .map(|mut part| {
                if let Content::Url(url) = &mut part.content {
                    *url = url.replace("HERE", &here);
                }
                part
            })
            .collect();
        match blocks(&parts, &workspace, takes) {
            Ok(blocks) => {
                let text = String::from_utf8(codec::encode(&blocks).to_vec()).unwrap();
                codec::decode(text.replace(&here, "HERE").as_bytes()).unwrap()
            }
            Err(error) => error.to_string().into(),
        }
    }

    fn raw(bytes: &'static [u8], filename: &str, media_type: &str) -> Part {
        let part = Part::from(Content::Raw(bytes.into()));
        Part { filename: filename.into(), media_type: media_type.into(), ..part }
    }

    fn url(url: &str, media_type: &str) -> Part {
        Part { media_type: media_type.into(), ..Part::from(Content::Url(url.into())) }
    }

    #[test]
    fn an_agent_that_takes_everything_gets_everything() {
        let mut takes = PromptCapabilities::default();
        (takes.image, takes.audio, takes.embedded_context) = (true, true, true);
        let parts = [
            Part::text("look"),
            raw(&[1, 2, 3], "p.png", "image/png"),
            raw(b"hello", "n.txt", "text/plain"),
            url("file://HERE/a.md", "text/markdown"),
            Part::data(json!({ "a": 1 })),
        ];
        assert_eq!(
            told(&parts, &takes),
            json!([
                { "type": "text", "text": "look" },
                { "type": "image", "data": "AQID", "mimeType": "image/png" },
                { "type": "resource", "resource": { "mimeType": "text/plain", "text": "hello", "uri": "attachment:n%2Etxt" } },
                { "type": "resource", "resource": { "mimeType": "text/markdown", "text": "# A", "uri": "file://HERE/a.md" } },
                { "type": "text", "text": "{\"a\":1}" },
            ])
        );
    }

    #[test]
    fn an_agent_that_takes_only_text_gets_links_and_words() {
        let parts = [
            raw(b"hello", "n.txt", "text/plain"),
            url("file://HERE/a.md", "text/markdown"),
            url("file://HERE/p.png", "image/png"),
        ];
        assert_eq!(
            told(&parts, &PromptCapabilities::default()),
            json!([
                { "type": "text", "text": "n.txt:\nhello" },
                { "type": "resource_link", "name": "a.md", "uri": "file://HERE/a.md", "mimeType": "text/markdown" },
                { "type": "resource_link", "name": "p.png", "uri": "file://HERE/p.png", "mimeType": "image/png" },
            ])
        );
        let picture = told(&[raw(&[1], "p.png", "image/png")], &PromptCapabilities::default());
        assert!(picture[0]["text"].as_str().unwrap().contains("p.png"), "{picture}");
    }

    #[test]
    fn files_outside_are_refused() {
        let told = told(&[url("file:///etc/passwd", "text/plain")], &PromptCapabilities::default());
        assert_eq!(told, "A2A file URL part is outside the allowed workspace.");
    }
}

//! What the server offers, for clients without a schema. Both versions of reflection have the same messages.

use std::collections::{HashMap, VecDeque};
use std::sync::LazyLock;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use nuncio_protocol::proto::reflection::server_reflection_request::MessageRequest;
use nuncio_protocol::proto::reflection::server_reflection_response::MessageResponse;
use nuncio_protocol::proto::reflection::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest,
    ServerReflectionResponse, ServiceResponse,
};
use nuncio_protocol::proto::{Code, DESCRIPTORS, decode};
use nuncio_protocol::{Error, ErrorKind};
use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use tokio_util::sync::CancellationToken;

use super::frame::{Encoding, take};
use super::{SERVICES, framed, no_method, reply};
use crate::auth::Caller;
use crate::bind::body::Body;
use crate::bind::{App, StreamPlace};
use crate::call::Version;

/// The largest question: names are short.
const LARGEST: usize = 64 << 10;

pub(super) fn answer<B>(app: &App, method: &str, caller: &Caller, incoming: B) -> Result<Response<Body>, Error>
where
    B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: std::fmt::Display,
{
    if method != "ServerReflectionInfo" {
        return Err(no_method());
    }
    let place = app.stream_place(&caller.name)?;
    let state = Talk { incoming, buffer: BytesMut::new(), over: false, closing: app.closing.clone(), _place: place };
    let frames = stream::unfold(state, async |mut talk| talk.next().await.map(|frame| (frame, talk)));
    Ok(reply::stream(Body::Frames(Box::pin(frames))))
}

/// Questions come one after the other, and each is answered before the next is read.
struct Talk<B> {
    incoming: B,
    buffer: BytesMut,
    over: bool,
    closing: CancellationToken,
    _place: StreamPlace,
}

impl<B> Talk<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    async fn next(&mut self) -> Option<Frame<Bytes>> {
        if self.over {
            return None;
        }
        loop {
            match self.question() {
                Ok(Some(question)) => return Some(Frame::data(framed(&found(question).encode_to_vec()))),
                Ok(None) => {}
                Err(error) => return self.end(reply::trailers(Version::V1, &error)),
            }
            let more = tokio::select! {
                more = self.incoming.frame() => more,
                () = self.closing.cancelled() => return self.end(reply::closing(Version::V1)),
            };
            match more {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                None if self.buffer.is_empty() => return self.end(reply::ok()),
                Some(Err(_)) | None => {
                    let error = Error::new(ErrorKind::InvalidRequest, "The question broke off");
                    return self.end(reply::trailers(Version::V1, &error));
                }
            }
        }
    }

    fn question(&mut self) -> Result<Option<ServerReflectionRequest>, Error> {
        let mut whole = self.buffer.split().freeze();
        let message = take(&mut whole, Encoding::Identity, LARGEST)?;
        self.buffer = whole.into();
        message.map(decode).transpose()
    }

    fn end(&mut self, trailers: HeaderMap) -> Option<Frame<Bytes>> {
        self.over = true;
        Some(Frame::trailers(trailers))
    }
}

fn found(question: ServerReflectionRequest) -> ServerReflectionResponse {
    let answer = match &question.message_request {
        Some(MessageRequest::ListServices(_)) => {
            let service = SERVICES.iter().map(|(name, _)| ServiceResponse { name: (*name).to_owned() }).collect();
            MessageResponse::ListServicesResponse(ListServiceResponse { service })
        }
        Some(MessageRequest::FileByFilename(name)) => files(SCHEMA.files.get(name).copied()),
        Some(MessageRequest::FileContainingSymbol(name)) => files(SCHEMA.symbols.get(name).copied()),
        Some(MessageRequest::AllExtensionNumbersOfType(name)) if SCHEMA.symbols.contains_key(name) => {
            let base_type_name = name.clone();
            let extension_number = Vec::new();
            MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse { base_type_name, extension_number })
        }
        Some(MessageRequest::AllExtensionNumbersOfType(_) | MessageRequest::FileContainingExtension(_)) => unknown(),
        None => failure(Code::InvalidArgument, "Nothing is asked for"),
    };
    ServerReflectionResponse {
        valid_host: question.host.clone(),
        original_request: Some(question),
        message_response: Some(answer),
    }
}

/// A file and all that it needs, so that nobody has to ask again.
fn files(file: Option<usize>) -> MessageResponse {
    let Some(file) = file else { return unknown() };
    let mut wanted = VecDeque::from([file]);
    let mut all: Vec<usize> = Vec::new();
    while let Some(next) = wanted.pop_front() {
        if !all.contains(&next) {
            all.push(next);
            wanted.extend(&SCHEMA.needs[next]);
        }
    }
    let file_descriptor_proto = all.into_iter().map(|file| SCHEMA.encoded[file].clone()).collect();
    MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto })
}

fn unknown() -> MessageResponse {
    failure(Code::NotFound, "There is nothing of that name")
}

fn failure(code: Code, text: &str) -> MessageResponse {
    MessageResponse::ErrorResponse(ErrorResponse { error_code: code.number(), error_message: text.to_owned() })
}

/// The schemas, and where everything is in them. Read when somebody asks for the first time.
static SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::read);

#[derive(Default)]
struct Schema {
    encoded: Vec<Bytes>,
    needs: Vec<Vec<usize>>,
    files: HashMap<String, usize>,
    symbols: HashMap<String, usize>,
}

impl Schema {
    fn read() -> Self {
        let mut schema = Self::default();
        let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap_or_default();
        for (i, file) in set.file.iter().enumerate() {
            schema.encoded.push(file.encode_to_vec().into());
            schema.files.insert(file.name().to_owned(), i);
            schema.name_all(file, i);
        }
        for file in &set.file {
            schema.needs.push(file.dependency.iter().filter_map(|name| schema.files.get(name).copied()).collect());
        }
        schema
    }

    fn name_all(&mut self, file: &FileDescriptorProto, i: usize) {
        let package = file.package();
        for message in &file.message_type {
            self.name_message(package, message, i);
        }
        for one in &file.enum_type {
            self.symbols.insert(format!("{package}.{}", one.name()), i);
        }
        for service in &file.service {
            let name = format!("{package}.{}", service.name());
            for method in &service.method {
                self.symbols.insert(format!("{name}.{}", method.name()), i);
            }
            self.symbols.insert(name, i);
        }
    }

    fn name_message(&mut self, scope: &str, message: &DescriptorProto, i: usize) {
        let name = format!("{scope}.{}", message.name());
        for inner in &message.nested_type {
            self.name_message(&name, inner, i);
        }
        for one in &message.enum_type {
            self.symbols.insert(format!("{name}.{}", one.name()), i);
        }
        self.symbols.insert(name, i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(question: MessageRequest) -> MessageResponse {
        let question = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
        found(question).message_response.expect("an answer")
    }

    #[test]
    fn every_service_is_described_with_all_that_it_needs() {
        for (name, _) in SERVICES {
            let answer = ask(MessageRequest::FileContainingSymbol(name.to_owned()));
            let MessageResponse::FileDescriptorResponse(files) = answer else { panic!("{name}: {answer:?}") };
            let first = FileDescriptorProto::decode(&*files.file_descriptor_proto[0]).expect("a descriptor");
            assert!(name.starts_with(first.package()), "{name}");
            assert!(files.file_descriptor_proto.len() > first.dependency.len(), "{name}");
        }
        let nested = "grpc.health.v1.HealthCheckResponse.ServingStatus".to_owned();
        assert!(matches!(
            ask(MessageRequest::FileContainingSymbol(nested)),
            MessageResponse::FileDescriptorResponse(_)
        ));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for question in [
            MessageRequest::FileByFilename("x.proto".into()),
            MessageRequest::FileContainingSymbol("x.Y".into()),
            MessageRequest::AllExtensionNumbersOfType("x.Y".into()),
        ] {
            let MessageResponse::ErrorResponse(error) = ask(question) else { panic!("an answer") };
            assert_eq!(error.error_code, 5);
        }
    }
}

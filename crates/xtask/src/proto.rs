//! Rust from the schemas of gRPC, and the descriptors that reflection hands out. Both are committed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use prost::Message as _;
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FileDescriptorSet};

const SCHEMAS: [&str; 6] = [
    "lf/a2a/v1/a2a.proto",
    "a2a/v1/a2a.proto",
    "iac_code/a2a/transports/jsonrpc.proto",
    "grpc/health/v1/health.proto",
    "grpc/reflection/v1/reflection.proto",
    "grpc/reflection/v1alpha/reflection.proto",
];
const DESCRIPTORS: &str = "descriptors.bin";

/// Writes what is generated.
pub(crate) fn write() -> Result<()> {
    let (root, files) = generate()?;
    for (name, content) in files {
        fs::write(root.join(&name), content).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// Fails if what is committed is not what the schemas say.
#[cfg(test)]
fn check() -> Result<()> {
    let (root, files) = generate()?;
    for (name, content) in files {
        if fs::read(root.join(&name)).ok().as_deref() != Some(&content) {
            anyhow::bail!("{name} is not what the schemas say: run `cargo xtask proto` and commit what it writes");
        }
    }
    Ok(())
}

/// Names and contents.
type Files = Vec<(String, Vec<u8>)>;

/// The folder for generated files, and each of them.
fn generate() -> Result<(PathBuf, Files)> {
    let protocol = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol");
    let descriptors = protox::compile(SCHEMAS, [protocol.join("proto")]).context("the schemas do not compile")?;
    let mut files = vec![(DESCRIPTORS.to_owned(), without_source(&descriptors).encode_to_vec())];
    let out = tempfile::tempdir()?;
    let mut config = prost_build::Config::new();
    config.out_dir(out.path()).bytes(["."]).btree_map(["."]);
    config.extern_path(".google.protobuf.Timestamp", "crate::proto::Timestamp");
    // The two versions of reflection have the same messages.
    let kept = ["lf.a2a.v1", "a2a.v1", "iac_code.a2a.transports.proto", "grpc.health.v1", "grpc.reflection.v1"];
    config.compile_fds(opaque(descriptors)).context("the schemas give no Rust")?;
    for package in kept {
        let name = format!("{package}.rs");
        let text = fs::read(out.path().join(&name)).with_context(|| format!("no code for {package}"))?;
        files.push((name, text));
    }
    Ok((protocol.join("src/proto/generated"), files))
}

/// JSON inside of messages is read and written by our own code, so for prost it is bytes, which look the same.
fn opaque(mut descriptors: FileDescriptorSet) -> FileDescriptorSet {
    fn messages(all: &mut [DescriptorProto]) {
        for message in all {
            for field in &mut message.field {
                if matches!(field.type_name(), ".google.protobuf.Struct" | ".google.protobuf.Value") {
                    field.set_type(Type::Bytes);
                    field.type_name = None;
                }
            }
            messages(&mut message.nested_type);
        }
    }
    for file in &mut descriptors.file {
        messages(&mut file.message_type);
    }
    descriptors
}

/// Comments and positions are of no use to clients.
fn without_source(descriptors: &FileDescriptorSet) -> FileDescriptorSet {
    let mut all = descriptors.clone();
    for file in &mut all.file {
        file.source_code_info = None;
    }
    all
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_committed_is_what_the_schemas_say() {
        super::check().expect("current");
    }
}

//! The REST dialect: ProtoJSON of `a2a.v1`, where messages have `content` and results are wrapped.
//!
//! Ids come from the path: what a reader finds in the body is only a guess for the caller to overwrite.
//! As the schema has no presence here, a history length of zero means that all of it is wanted, and a
//! configuration without `blocking` means that the client does not wait.

super::functions!(super::Dialect::Rest);

//! The JSON-RPC dialect: a `kind` in every object, results not wrapped, lower-case names.

super::functions!(super::Dialect::Json);

//! JSON as `google.protobuf.Struct` and `google.protobuf.Value`.
//!
//! Written and read here rather than by prost: without a second tree, with our own limit of depth, and with errors
//! that say what is wrong.

use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field};

use super::wrong;
use crate::codec::{DecodeError, Object, Value};

/// How deep values may nest; JSON bodies have the same limit.
const DEEPEST: usize = 100;

/// Fields of `Value`.
const NULL: u32 = 1;
const NUMBER: u32 = 2;
const STRING: u32 = 3;
const BOOL: u32 = 4;
const OBJECT: u32 = 5;
const LIST: u32 = 6;
/// The only field of `Struct` and of `ListValue`.
const ITEMS: u32 = 1;
/// Fields of an entry of `Struct`.
const KEY: u32 = 1;
const VALUE: u32 = 2;

/// An object as a `Struct`.
pub fn write_object(object: &Object) -> Vec<u8> {
    let mut out = Vec::new();
    put_object(object, &mut out);
    out
}

/// Any JSON as a `Value`.
pub fn write_value(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put_value(value, &mut out);
    out
}

/// Reads a `Struct`.
pub fn read_object(wire: &[u8]) -> Result<Object, DecodeError> {
    take_object(wire, DEEPEST)
}

/// Reads a `Value`; one that says nothing is null.
pub fn read_value(wire: &[u8]) -> Result<Value, DecodeError> {
    take_value(wire, DEEPEST)
}

fn put_object(object: &Object, out: &mut Vec<u8>) {
    for (key, value) in object {
        put_nested(ITEMS, out, |out| {
            put_text(KEY, key, out);
            put_nested(VALUE, out, |out| put_value(value, out));
        });
    }
}

fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => {
            encode_key(NULL, WireType::Varint, out);
            out.push(0);
        }
        Value::Bool(truth) => {
            encode_key(BOOL, WireType::Varint, out);
            out.push((*truth).into());
        }
        Value::Number(number) => {
            encode_key(NUMBER, WireType::SixtyFourBit, out);
            out.extend_from_slice(&number.as_f64().unwrap_or_default().to_le_bytes());
        }
        Value::String(text) => put_text(STRING, text, out),
        Value::Object(object) => put_nested(OBJECT, out, |out| put_object(object, out)),
        Value::Array(all) => put_nested(LIST, out, |out| {
            for value in all {
                put_nested(ITEMS, out, |out| put_value(value, out));
            }
        }),
    }
}

fn put_text(field: u32, text: &str, out: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// A message whose length is known only when it is written.
fn put_nested(field: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    encode_key(field, WireType::LengthDelimited, out);
    let start = out.len();
    // One byte is enough for most.
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out[start] = short,
        _ => {
            let mut prefix = Vec::with_capacity(10);
            encode_varint(length as u64, &mut prefix);
            out.splice(start..=start, prefix);
        }
    }
}

fn take_object(wire: &[u8], depth: usize) -> Result<Object, DecodeError> {
    let mut object = Object::new();
    let depth = deeper(depth)?;
    fields(wire, |field, content| {
        let (ITEMS, Field::Bytes(entry)) = (field, content) else { return Ok(()) };
        let (mut key, mut value) = (String::new(), Value::Null);
        fields(entry, |field, content| {
            match (field, content) {
                (KEY, Field::Bytes(bytes)) => key = text(bytes)?,
                (VALUE, Field::Bytes(bytes)) => value = take_value(bytes, depth)?,
                _ => {}
            }
            Ok(())
        })?;
        object.insert(key, value);
        Ok(())
    })?;
    Ok(object)
}

fn take_value(wire: &[u8], depth: usize) -> Result<Value, DecodeError> {
    let mut value = Value::Null;
    fields(wire, |field, content| {
        value = match (field, content) {
            (NULL, Field::Number(_)) => Value::Null,
            (BOOL, Field::Number(number)) => Value::Bool(number != 0),
            (NUMBER, Field::Double(number)) => take_number(number)?,
            (STRING, Field::Bytes(bytes)) => Value::String(text(bytes)?),
            (OBJECT, Field::Bytes(bytes)) => Value::Object(take_object(bytes, depth)?),
            (LIST, Field::Bytes(bytes)) => Value::Array(take_list(bytes, depth)?),
            _ => return Ok(()),
        };
        Ok(())
    })?;
    Ok(value)
}

fn take_list(wire: &[u8], depth: usize) -> Result<Vec<Value>, DecodeError> {
    let mut all = Vec::new();
    let depth = deeper(depth)?;
    fields(wire, |field, content| {
        if let (ITEMS, Field::Bytes(bytes)) = (field, content) {
            all.push(take_value(bytes, depth)?);
        }
        Ok(())
    })?;
    Ok(all)
}

/// A double that is whole was most likely a whole number, and JSON writes those without a fraction.
fn take_number(number: f64) -> Result<Value, DecodeError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT && !(number == 0.0 && number.is_sign_negative()) {
        #[allow(clippy::cast_possible_truncation)] // checked: whole, and inside the range
        return Ok(Value::from(number as i64));
    }
    match Value::from(number) {
        Value::Null => Err(wrong("holds a number that JSON does not have")),
        value => Ok(value),
    }
}

fn text(bytes: &[u8]) -> Result<String, DecodeError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| wrong("holds text that is not UTF-8"))
}

fn deeper(depth: usize) -> Result<usize, DecodeError> {
    depth.checked_sub(1).ok_or_else(|| wrong("nests deeper than 100 levels"))
}

/// The content of a field.
enum Field<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

/// Calls `each` for all fields of a message, in their order.
fn fields(mut wire: &[u8], mut each: impl FnMut(u32, Field<'_>) -> Result<(), DecodeError>) -> Result<(), DecodeError> {
    let broken = |_| wrong("is not valid protobuf");
    while !wire.is_empty() {
        let (field, kind) = decode_key(&mut wire).map_err(broken)?;
        let content = match kind {
            WireType::Varint => Field::Number(decode_varint(&mut wire).map_err(broken)?),
            WireType::SixtyFourBit => {
                let (bytes, rest) = wire.split_first_chunk().ok_or_else(|| wrong("is cut off"))?;
                wire = rest;
                Field::Double(f64::from_le_bytes(*bytes))
            }
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut wire).map_err(broken)?).unwrap_or(usize::MAX);
                let (bytes, rest) = wire.split_at_checked(length).ok_or_else(|| wrong("is cut off"))?;
                wire = rest;
                Field::Bytes(bytes)
            }
            kind => {
                skip_field(kind, field, &mut wire, prost::encoding::DecodeContext::default()).map_err(broken)?;
                continue;
            }
        };
        each(field, content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn values_come_back_as_they_were() {
        let long = "x".repeat(300);
        let value = json!({"a": [1, null, "x", true, -2.5, {"b": {}}, []], "long": long, "deep": {"c": {"d": long}}});
        assert_eq!(read_value(&write_value(&value)), Ok(value.clone()));
        let Value::Object(object) = value else { unreachable!() };
        assert_eq!(read_object(&write_object(&object)), Ok(object));
    }

    #[test]
    fn depth_has_a_limit() {
        let nested = |levels: usize| {
            let mut wire = write_value(&Value::Null);
            for _ in 0..levels {
                let mut list = Vec::new();
                put_nested(ITEMS, &mut list, |out| out.extend_from_slice(&wire));
                wire.clear();
                put_nested(LIST, &mut wire, |out| out.extend_from_slice(&list));
            }
            wire
        };
        assert!(read_value(&nested(100)).is_ok());
        let error = read_value(&nested(101)).expect_err("too deep");
        assert!(error.to_string().contains("100 levels"), "{error}");
    }

    #[test]
    fn what_json_does_not_have_is_refused() {
        let mut wire = vec![0x11];
        wire.extend_from_slice(&f64::NAN.to_le_bytes());
        assert!(read_value(&wire).is_err());
        assert!(read_value(&[0x1a, 5, b'x']).is_err(), "cut off");
        assert!(read_value(&[0x1a, 1, 0xff]).is_err(), "not UTF-8");
    }
}

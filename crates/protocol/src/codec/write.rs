//! JSON out, without a space too many: all that goes over the wire and into the log is written here.
//!
//! The names of members and of values of enums are words of our own code and are written as they are. Text is looked
//! through many bytes at a time, because hardly any needs escaping. What is rare, such as fractions, is left to
//! `serde_json`.

use std::mem;

use serde::ser::{self, Error as _, Serialize, Serializer};
use serde_json::Error;

/// How `serde_json` calls JSON text that is to be written as it is.
const RAW: &str = "$serde_json::private::RawValue";

/// Writes a value behind what is already there.
pub(super) fn write<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    value.serialize(Writer { out, raw: false })
}

/// Writes one value.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Whether text is JSON already.
    raw: bool,
}

/// Writes the values of an array or an object, one after the other.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
    raw: bool,
    close: u8,
    /// Whether they are all that a variant of an enum holds.
    of_variant: bool,
}

impl<'a> Writer<'a> {
    fn list(self) -> Members<'a> {
        self.out.push(b'[');
        Members { out: self.out, is_first: true, raw: false, close: b']', of_variant: false }
    }

    fn object(self) -> Members<'a> {
        self.out.push(b'{');
        Members { out: self.out, is_first: true, raw: false, close: b'}', of_variant: false }
    }

    /// Opens the object whose only member has the name of an enum's variant.
    fn variant(self, name: &'static str) -> Self {
        self.out.extend_from_slice(b"{\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self
    }

    fn integer(self, digits: impl itoa::Integer) {
        self.out.extend_from_slice(itoa::Buffer::new().format(digits).as_bytes());
    }
}

impl Members<'_> {
    fn value(&mut self) -> Writer<'_> {
        Writer { out: self.out, raw: self.raw }
    }

    fn separate(&mut self) {
        if !mem::replace(&mut self.is_first, false) {
            self.out.push(b',');
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.separate();
        value.serialize(self.value())
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        if !self.raw {
            self.separate();
            self.out.push(b'"');
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b"\":");
        }
        value.serialize(self.value())
    }

    fn close(self) {
        if self.raw {
            return;
        }
        self.out.push(self.close);
        if self.of_variant {
            self.out.push(b'}');
        }
    }
}

/// Writes any text.
fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        escape(out, text.as_bytes());
    }
    out.push(b'"');
}

/// Whether nothing has to be escaped, as in most text. All of it is looked at, many bytes at a time, which costs less
/// than stopping at the first; what is left at the end is looked at together with some that were looked at before.
fn is_plain(text: &[u8]) -> bool {
    if let Some(last) = text.last_chunk::<16>() {
        let mut found = last.map(is_special);
        for chunk in text.as_chunks::<16>().0 {
            for (found, byte) in found.iter_mut().zip(chunk) {
                *found |= is_special(*byte);
            }
        }
        return !found.into_iter().fold(false, |any, one| any | one);
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        return are_plain(first) & are_plain(last);
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        return are_plain(first) & are_plain(last);
    }
    !text.iter().copied().any(is_special)
}

fn are_plain<const N: usize>(bytes: &[u8; N]) -> bool {
    !bytes.iter().fold(false, |found, byte| found | is_special(*byte))
}

fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

fn escape(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(plain) = rest.iter().position(|byte| is_special(*byte)) {
        let byte = rest[plain];
        out.extend_from_slice(&rest[..plain]);
        rest = &rest[plain + 1..];
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(rest);
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'a>;
    type SerializeTuple = Members<'a>;
    type SerializeTupleStruct = Members<'a>;
    type SerializeTupleVariant = Members<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.integer(value);
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.integer(value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        serde_json::to_writer(self.out, &value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        serde_json::to_writer(self.out, &value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if self.raw {
            self.out.extend_from_slice(value.as_bytes());
        } else {
            text(self.out, value);
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.out.push(b'"');
        self.out.extend_from_slice(variant.as_bytes());
        self.out.push(b'"');
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let Writer { out, raw } = self.variant(variant);
        value.serialize(Writer { out: &mut *out, raw })?;
        out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.list())
    }

    fn serialize_tuple(self, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.list())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.list())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(Members { of_variant: true, ..self.variant(variant).list() })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.object())
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'a>, Error> {
        if name == RAW {
            return Ok(Members { out: self.out, is_first: true, raw: true, close: 0, of_variant: false });
        }
        Ok(self.object())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(Members { of_variant: true, ..self.variant(variant).object() })
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.separate();
        let start = self.out.len();
        key.serialize(self.value())?;
        if self.out.get(start) != Some(&b'"') {
            return Err(Error::custom("a key must be a string"));
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.out.push(b':');
        value.serialize(self.value())
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

/// The kinds of lists, and of objects with names of our own.
macro_rules! members {
    ($($kind:ident: $each:ident($($name:ident)?) -> $add:ident,)*) => {$(
        impl ser::$kind for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn $each<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Result<(), Error> {
                self.$add($($name,)? value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )*};
}

members! {
    SerializeSeq: serialize_element() -> element,
    SerializeTuple: serialize_element() -> element,
    SerializeTupleStruct: serialize_field() -> element,
    SerializeTupleVariant: serialize_field() -> element,
    SerializeStruct: serialize_field(name) -> field,
    SerializeStructVariant: serialize_field(name) -> field,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Serialize;
    use serde_json::value::RawValue;
    use serde_json::{Map, Value};

    use super::write;

    /// One of everything that serde knows.
    #[derive(Clone, Debug, Serialize)]
    enum Kind {
        Unit,
        Newtype(String),
        Tuple(i64, u64, Option<bool>),
        Struct { character: char, float: f64, small: f32, bytes: Vec<u8>, nothing: (), one: One },
        Map(BTreeMap<String, Kind>),
    }

    #[derive(Clone, Debug, Serialize)]
    struct One(i8, u16);

    fn same<T: Serialize + ?Sized>(value: &T) {
        let mut out = b"before".to_vec();
        write(value, &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), format!("before{}", serde_json::to_string(value).unwrap()));
    }

    fn kinds() -> impl Strategy<Value = Kind> {
        let leaf = prop_oneof![
            Just(Kind::Unit),
            ".*".prop_map(Kind::Newtype),
            any::<(i64, u64, Option<bool>)>().prop_map(|(a, b, c)| Kind::Tuple(a, b, c)),
            any::<(char, f64, f32, Vec<u8>, i8, u16)>().prop_map(|(character, float, small, bytes, a, b)| {
                Kind::Struct { character, float, small, bytes, nothing: (), one: One(a, b) }
            }),
        ];
        leaf.prop_recursive(3, 20, 5, |inner| prop::collection::btree_map(".*", inner, 0..5).prop_map(Kind::Map))
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[\\x00-\\x7f]{0,40}|.*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((".*", inner), 0..6).prop_map(|all| Value::from(Map::from_iter(all))),
            ]
        })
    }

    proptest! {
        #[test]
        fn all_kinds_are_written_as_serde_json_writes_them(kind in kinds()) {
            same(&kind);
        }

        #[test]
        fn all_values_are_written_as_serde_json_writes_them(value in values()) {
            same(&value);
        }

        #[test]
        fn a_byte_to_escape_is_found_wherever_it_stands(byte in 0_u8..128, before in 0_usize..70, after in 0_usize..70) {
            same(&format!("{}{}{}", "ä".repeat(before), char::from(byte), "x".repeat(after)));
        }
    }

    #[test]
    fn json_text_is_passed_on_as_it_is() {
        let raw: Box<RawValue> = serde_json::from_str(" [1,  2.50, \"\\u0041\"]").unwrap();
        same(&vec![(1, &raw), (2, &raw)]);
    }

    #[test]
    fn keys_are_strings() {
        let error = write(&BTreeMap::from([(1, 2)]), &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "a key must be a string");
    }
}

//! The canonical form of JSON that RFC 8785 defines: signatures cover it.

use crate::codec::Value;

/// The one text that stands for a value: members sorted by UTF-16 code units, no white space, numbers as
/// ECMAScript writes them, nothing escaped that need not be.
pub fn canonical(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).expect("a JSON value has string keys and finite numbers")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json;

    fn text(value: &Value) -> String {
        String::from_utf8(canonical(value)).unwrap()
    }

    #[test]
    fn numbers_are_written_as_ecmascript_writes_them() {
        for (read, written) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("1.0", "1"),
            ("-1.50", "-1.5"),
            ("1E2", "100"),
            ("1e20", "100000000000000000000"),
            ("123456789012345680000", "123456789012345680000"),
            ("1e21", "1e+21"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740993", "9007199254740992"),
            ("0.1", "0.1"),
            ("333333333.33333329", "333333333.3333333"),
        ] {
            let value: Value = serde_json::from_str(read).unwrap();
            assert_eq!(text(&value), written, "{read}");
        }
    }

    #[test]
    fn only_what_must_be_is_escaped() {
        let value = json!("\u{8}\t\n\u{c}\r\u{0}\u{1f}\"\\/\u{7f}\u{80}é€😀\u{2028}");
        let written = "\"\\b\\t\\n\\f\\r\\u0000\\u001f\\\"\\\\/\u{7f}\u{80}é€😀\u{2028}\"";
        assert_eq!(text(&value), written);
    }

    #[test]
    fn members_are_sorted_by_utf16_code_units() {
        // As code points the last two would change places: 😀 is D83D DE00 in UTF-16.
        let value = json!({"\u{fb33}": 1, "😀": 2, "é": 3, "10": 4, "1": 5, "\r": 6, "": 7, "b": {"z": [], "a": null}});
        let written = "{\"\":7,\"\\r\":6,\"1\":5,\"10\":4,\"b\":{\"a\":null,\"z\":[]},\"é\":3,\"😀\":2,\"\u{fb33}\":1}";
        assert_eq!(text(&value), written);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
            (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Numbers are doubles here, whatever they look like.
    fn same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
            (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (Value::Object(a), Value::Object(b)) => {
                a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
            }
            (a, b) => a == b,
        }
    }

    fn reversed(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                members.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect()
            }
            Value::Array(items) => items.iter().map(reversed).collect(),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_order_of_members_does_not_matter(value in any_value()) {
            let once = canonical(&value);
            let again: Value = serde_json::from_slice(&once).unwrap();
            prop_assert!(same(&value, &again));
            prop_assert_eq!(&canonical(&again), &once);
            prop_assert_eq!(&canonical(&reversed(&value)), &once);
        }

        #[test]
        fn members_are_in_order(names in proptest::collection::vec(any::<String>(), 0..20)) {
            let value: Value = names.into_iter().map(|name| (name, Value::Null)).collect();
            let read: serde_json::Map<String, Value> = serde_json::from_slice(&canonical(&value)).unwrap();
            let order: Vec<Vec<u16>> = read.keys().map(|name| name.encode_utf16().collect()).collect();
            prop_assert!(order.is_sorted());
        }
    }
}

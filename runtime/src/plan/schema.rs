//! The JSON Schema of a plan, made from its types.

use super::Plan;
use crate::expr::Expr;
use crate::number::Numeral;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::path::Path;

impl JsonSchema for Expr {
    fn schema_name() -> Cow<'static, str> {
        "Expr".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size as text, such as `(N + 63) floordiv 64`: see docs/plan.md.",
            "type": "string",
            "minLength": 1,
        })
    }
}

impl JsonSchema for Numeral {
    fn schema_name() -> Cow<'static, str> {
        "Numeral".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "A number, read without loss.", "type": "number" })
    }
}

#[test]
fn the_schema_in_docs_is_that_of_the_types() {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Plan)).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/plan.schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == schema,
        "docs/plan.schema.json is not that of the types; write it by UPDATE_SCHEMA=1 cargo test"
    );
}

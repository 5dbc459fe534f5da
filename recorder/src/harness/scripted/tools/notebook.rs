//! NotebookEdit.

use serde_json::{Value, json};

use super::{Bench, Fault, Outcome, Performed, files, required};

pub(super) fn edit(bench: &mut Bench, input: &Value) -> Performed {
    let name = required("NotebookEdit", input, "notebook_path")?;
    let source = required("NotebookEdit", input, "new_source")?;
    let mode = input["edit_mode"].as_str().unwrap_or("replace");
    let path = bench.path(name);
    bench.must_know(&path)?;
    let original = files::text_of(&path, &bench.workspace)?;
    let mut notebook: Value =
        serde_json::from_str(&original).map_err(|_| Fault::Invalid("Notebook is not valid JSON.".into()))?;
    let cell_type = input["cell_type"].as_str().unwrap_or("code").to_owned();
    let cells = notebook["cells"].as_array_mut().ok_or_else(|| Fault::Invalid("Notebook has no cells.".into()))?;
    let at = input["cell_id"].as_str().map(|id| {
        let found = cells.iter().position(|cell| cell["id"] == id);
        found.ok_or_else(|| Fault::Invalid(format!("Cell with ID \"{id}\" not found in notebook.")))
    });
    let at = at.transpose()?;
    let (done, id) = match (mode, at) {
        ("replace", Some(at)) => {
            cells[at]["source"] = source.into();
            ("Updated", cells[at]["id"].clone())
        }
        ("insert", at) => {
            let id = Value::from(format!("cell-{}", cells.len() + 1));
            let cell = json!({"cell_type": cell_type, "id": id, "metadata": {}, "source": source});
            cells.insert(at.map_or(0, |at| at + 1), cell);
            ("Inserted", id)
        }
        ("delete", Some(at)) => ("Deleted", cells.remove(at)["id"].take()),
        ("replace" | "delete", None) => return Err(Fault::Invalid("Cell ID must be specified.".into())),
        _ => return Err(Fault::Invalid("Edit mode must be replace, insert, or delete.".into())),
    };
    let updated = format!("{notebook:#}");
    files::replace(&path, &updated)?;
    bench.learn(&path);
    let id = id.as_str().unwrap_or_default();
    let result = json!({
        "new_source": source, "cell_type": cell_type, "language": "python", "edit_mode": mode, "cell_id": id,
        "error": "", "notebook_path": name, "original_file": original, "updated_file": updated,
    });
    Ok(Outcome::text(format!("{done} cell {id} with {source}"), result))
}

#[cfg(test)]
mod tests {
    use super::super::tests::bench;
    use super::*;

    #[test]
    fn a_notebook_cell_is_replaced_inserted_and_deleted() {
        let notebook = r#"{"cells": [{"cell_type": "code", "id": "c1", "metadata": {}, "source": "x = 1"}]}"#;
        let (directory, mut bench) = bench(&[("n.ipynb", notebook)]);
        let cells =
            || -> Value { serde_json::from_slice(&std::fs::read(directory.path().join("n.ipynb")).unwrap()).unwrap() };
        bench.perform("Read", &json!({"notebook_path": "", "file_path": "n.ipynb"}));
        let call = |mode: &str, id: Option<&str>, source: &str| json!({"notebook_path": "n.ipynb", "edit_mode": mode, "cell_id": id, "new_source": source});
        assert_eq!(
            bench.perform("NotebookEdit", &call("replace", Some("c1"), "x = 2")).content,
            "Updated cell c1 with x = 2"
        );
        assert_eq!(cells()["cells"][0]["source"], "x = 2");
        assert_eq!(bench.perform("NotebookEdit", &call("insert", Some("c1"), "y")).is_error, None);
        assert_eq!(cells()["cells"][1]["source"], "y");
        assert_eq!(bench.perform("NotebookEdit", &call("delete", Some("c1"), "")).is_error, None);
        assert_eq!(cells()["cells"].as_array().unwrap().len(), 1);
        assert_eq!(bench.perform("NotebookEdit", &call("replace", Some("c9"), "")).is_error, Some(true));
        assert_eq!(bench.perform("NotebookEdit", &call("replace", None, "")).is_error, Some(true));
        assert_eq!(bench.perform("NotebookEdit", &call("turn", None, "")).is_error, Some(true));
    }
}

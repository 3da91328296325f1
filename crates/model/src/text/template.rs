//! Templates that nobody has filled in, told by their marks: what stands between them is no YAML, or no value.
//!
//! What must not live here: filling them in. `${NAME}` with a value is filled in by [`tree`](super::tree).

/// What to do with a text in which a template's marks are left; `None` if it has none.
///
/// The marks are those of Go templates as Helm has them, which Jinja shares, of Terraform's `templatefile`, and of `envsubst`.
pub fn way_out(text: &str) -> Option<String> {
    if text.contains("{{") || text.contains("{%") {
        return Some(
            "this is a template of Helm or the like (`{{ … }}`): render it first, for example `helm template CHART > rendered.yaml`, and name \
             what comes out"
                .to_owned(),
        );
    }
    if text.contains("%{") {
        return Some("this is a template of Terraform (`%{ … }`): render it first, and name what comes out".to_owned());
    }
    let name = text.split_once("${")?.1.split_once('}')?.0;
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    Some(if is_name {
        format!(
            "`${{{name}}}` has no value: a scenario gives it one with `variables: {{ {name}: VALUE }}`; for `nodecast pack` fill it in first, for \
             example with `envsubst`"
        )
    } else {
        "this is a template of Terraform or of a shell (`${ … }`): render it first, and name what comes out".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::way_out;
    use crate::domain::{Quantity, SimDuration};
    use crate::text::reader::Reader;
    use crate::text::tree::{Node, Variables, parse};
    use crate::text::{InputError, Limits, Source};

    fn said(error: &InputError) -> &str {
        error.way_out().unwrap_or_default()
    }

    #[test]
    fn marks_of_templates_are_told_apart() {
        let said = |text| way_out(text).unwrap_or_default();
        assert!(said("name: {{ .Values.name }}").contains("helm template"));
        assert!(said("{% for a in b %}").contains("helm template"));
        assert!(said("%{ if labels != \"\" }").contains("Terraform"));
        assert!(said("${REPLICAS}").contains("`variables: { REPLICAS: VALUE }`"));
        assert!(said("${var.replicas}").contains("Terraform"));
        assert_eq!(way_out("a: {b: {c: 1}}"), None);
        assert_eq!(way_out("costs $5 {or so}"), None);
        assert_eq!(way_out("a ${ that never ends"), None);
    }

    #[test]
    fn unrendered_template_error_names_the_template() {
        for text in [
            "metadata:\n  name: {{ include \"chart.fullname\" . }}\n",
            "{{- if .Values.enabled }}\na: b\n{{- end }}\n",
            "spec:\n  %{ if labels != \"\" }\n  a: b\n",
        ] {
            let source = Source::new("a.yaml", text);
            let error = parse(&source, &Variables::new(), &Limits::default()).expect_err("it is a template");
            assert!(said(&error).contains("render it first") && error.place().is_some(), "{text}: {error:?}");
        }
        let source = Source::new("a.yaml", "a: [b\nc: d\n");
        let error = parse(&source, &Variables::new(), &Limits::default()).expect_err("it is no YAML");
        assert!(!said(&error).contains("render"), "{error:?}");
    }

    #[test]
    fn unresolved_variable_error_names_the_variable() {
        let source = Source::new("a.yaml", "open: ${SIZE}\nhelm: \"{{ .Values.size }}\"\nwrong: many\n");
        let documents = parse(&source, &Variables::new(), &Limits::default()).unwrap();
        let reader = Reader::new(Some(&source));
        let node = |key| -> &Node<'_> { documents[0].get(key).unwrap() };
        for (key, part) in [("open", "`${SIZE}` has no value"), ("helm", "helm template")] {
            let errors = [
                reader.integer(node(key), "a", 0, 9).map(|_: i64| ()),
                reader.quantity(node(key), "a").map(|_: Quantity| ()),
                reader.duration(node(key), "a").map(|_: SimDuration| ()),
                reader.truth(node(key), "a").map(|_: bool| ()),
                reader.choice(node(key), "a", &[("b", 1)]).map(|_| ()),
            ];
            for error in errors {
                let error = error.expect_err("it has no value");
                assert!(said(&error).contains(part), "{error:?}");
            }
        }
        let plain = reader.integer(node("wrong"), "a", 0, 9).expect_err("it is no number");
        assert_eq!(said(&plain), "write a whole number, for example 3");
    }
}

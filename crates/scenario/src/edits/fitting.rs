//! Edits of objects of one name that are not alike, as policies may have them: each is changed where the edit fits it.

use super::{Edit, shown, value_of};
use crate::domain::Symbol;
use crate::domain::labels::{auto_mode_label, is_of_karpenters_types};
use crate::error::ScenarioError;
use crate::tree::{Node, NodeKind};

/// The group of the node classes of EKS Auto Mode.
const AUTO_MODE_GROUP: &str = "eks.amazonaws.com";

impl Edit {
    /// Changes those objects of `documents` that it names and fits: policies may have objects of one name that are not alike. True if it found a
    /// place in any, and why it fits none of those that stay as they are.
    pub(crate) fn apply_where_it_fits<'s>(
        &'s self,
        documents: &mut [Node<'s>],
        offset: usize,
    ) -> (bool, Option<ScenarioError>) {
        let (mut found, mut misfit) = (false, None);
        let mut look = |object: &mut Node<'s>| {
            if !self.object.as_ref().is_some_and(|choice| choice.names(object)) {
                return;
            }
            let mut changed = object.clone();
            match self.misfit(object).map_or_else(|| self.apply_to(&mut changed, offset), Err) {
                Ok(misfit) => {
                    found |= misfit;
                    *object = changed;
                }
                Err(error) => {
                    misfit.get_or_insert(error);
                }
            }
        };
        documents.iter_mut().for_each(|document| each_object(document, &mut look));
        (found, misfit)
    }

    /// Why requirements that it sets are not for a NodePool: EKS Auto Mode has labels of its own, and refuses those of Karpenter's provider.
    fn misfit(&self, object: &Node<'_>) -> Option<ScenarioError> {
        let reference = ["spec", "template", "spec", "nodeClassRef", "group"];
        let group = reference.iter().try_fold(object, |node, key| node.get(key)).and_then(Node::as_text);
        if self.is_whole() || group != Some(AUTO_MODE_GROUP) {
            return None;
        }
        let value = value_of(&self.source).ok()??;
        // An item that is appended is one term, not a list of them.
        let keys = value.items().iter().chain([&value]).filter_map(|term| term.get("key").and_then(Node::as_text));
        let label = keys.map(Symbol::new).find(|key| is_of_karpenters_types(*key))?;
        let error = ScenarioError::new(format!("`{}`: EKS Auto Mode refuses the label `{label}`", shown(&self.path)));
        Some(match auto_mode_label(label) {
            Some(auto_mode_label) => error.help(format!("write `{auto_mode_label}`")),
            None => error,
        })
    }
}

/// Looks at each object of a document, those in lists too.
fn each_object<'s>(document: &mut Node<'s>, look: &mut dyn FnMut(&mut Node<'s>)) {
    if let NodeKind::Map(entries) = &mut document.kind
        && let Some(list) = entries.iter_mut().find(|entry| entry.key == "items")
        && let NodeKind::Seq(items) = &mut list.value.kind
    {
        return items.iter_mut().for_each(|item| each_object(item, look));
    }
    look(document);
}

#[cfg(test)]
mod tests {
    use super::Edit;
    use crate::source::{Limits, Source};
    use crate::tree::{self, Variables};

    #[test]
    fn edit_skips_objects_it_does_not_fit() {
        let pool = |group: &str, label: &str| {
            format!(
                "kind: NodePool\nmetadata: {{name: a}}\nspec: {{template: {{spec: {{nodeClassRef: {{group: {group}}}, \
                 requirements: [{{key: {label}/instance-family, values: [m5]}}]}}}}}}\n"
            )
        };
        let (pool, auto) =
            (pool("karpenter.k8s.aws", "karpenter.k8s.aws"), pool("eks.amazonaws.com", "eks.amazonaws.com"));
        let requirements = "NodePool[a].spec.template.spec.requirements";
        let of_item = format!("{requirements}[karpenter.k8s.aws/instance-family].values=[c7i]");
        let of_list = format!("{requirements}=[{{key: karpenter.k8s.aws/instance-family, values: [c7i]}}]");
        for edit in [of_item, of_list] {
            let edit = Edit::parse(&edit).unwrap();
            let applied = |text: &str| {
                let source = Source::new("objects.yaml", text);
                let mut documents = tree::parse(&source, &Variables::new(), &Limits::default()).unwrap();
                let before = documents.clone();
                let (found, misfit) = edit.apply_where_it_fits(&mut documents, source.edit_offset(0));
                let same: Vec<bool> = before.iter().zip(&documents).map(|(before, after)| before == after).collect();
                (found, misfit.is_some(), same)
            };
            assert_eq!(applied(&format!("{pool}---\n{auto}")), (true, true, vec![false, true]));
            assert_eq!(applied(&pool), (true, false, vec![false]));
            assert_eq!(applied(&auto), (false, true, vec![true]));
        }
    }
}

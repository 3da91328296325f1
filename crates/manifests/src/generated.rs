//! Names that the API server makes (`generateName`): each create is an object of its own.
//!
//! Jobs, pods, Services and Ingresses are told apart, for other kinds are hardly made so.

use super::{Manifests, Origin};
use nodecast_model::domain::Symbol;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::Node;

/// Whether the API server makes the name of an object.
pub(super) fn is_generated(object: &Node<'_>) -> bool {
    let Some(metadata) = object.get("metadata") else { return false };
    let stated = |key| metadata.get(key).and_then(Node::as_text).is_some_and(|text| !text.is_empty());
    stated("generateName") && !stated("name")
}

/// An object whose name the API server makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generated {
    /// Its kind.
    pub kind: Symbol,
    /// Its namespace, and what its name begins with.
    pub prefix: ObjectName,
    /// What it is called here.
    pub name: ObjectName,
}

impl Manifests {
    /// Names the object of this kind that was read last, if the API server makes its name: the first of a prefix is called by the
    /// prefix alone, those that follow have their number behind it. (The API server adds five characters at random.)
    ///
    /// Source: Kubernetes 1.36 `k8s.io/apiserver/pkg/storage/names/generate.go`, `GenerateName`.
    pub(super) fn name_last(&mut self, reader: &Reader<'_>, kind: &str, object: &Node<'_>) {
        if !is_generated(object) {
            return;
        }
        let mut taken = self.names(kind);
        let Some(prefix) = taken.pop() else { return };
        let name = free(prefix, &taken);
        self.rename(kind, taken.len(), name);
        let kind = Symbol::new(kind);
        if let Some(file) = reader.file() {
            let at = object
                .get("metadata")
                .and_then(|object| object.get("generateName"))
                .map_or(object.at, |object| object.at);
            self.origins.insert((kind, name.namespace, name.name), Origin { file: Symbol::new(file), at });
        }
        self.generated.push(Generated { kind, prefix, name });
    }

    /// Gives objects whose names are generated such that none of the `older` ones has.
    pub fn tell_apart(&mut self, older: &[&Self]) {
        for position in 0..self.generated.len() {
            let Generated { kind, prefix, name } = self.generated[position];
            let mut names = self.names(kind.as_str());
            let mut taken: Vec<ObjectName> = older.iter().flat_map(|all| all.names(kind.as_str())).collect();
            let Some(place) = names.iter().position(|known| *known == name) else { continue };
            if !taken.contains(&name) {
                continue;
            }
            names.remove(place);
            taken.append(&mut names);
            let newer = free(prefix, &taken);
            self.rename(kind.as_str(), place, newer);
            if let Some(origin) = self.origins.remove(&(kind, name.namespace, name.name)) {
                self.origins.insert((kind, newer.namespace, newer.name), origin);
            }
            self.generated[position].name = newer;
        }
    }

    fn names(&self, kind: &str) -> Vec<ObjectName> {
        match kind {
            "Job" => self.jobs.iter().map(|job| job.name).collect(),
            "Pod" => self.pods.iter().map(|pod| pod.name).collect(),
            "Service" => self.services.iter().map(|service| service.name).collect(),
            "Ingress" => self.ingresses.iter().map(|ingress| ingress.name).collect(),
            _ => Vec::new(),
        }
    }

    /// Renames the object at a place among those of its kind.
    fn rename(&mut self, kind: &str, place: usize, name: ObjectName) {
        let kind = match kind {
            "Job" => self.jobs.get_mut(place).map(|job| &mut job.name),
            "Service" => self.services.get_mut(place).map(|service| &mut service.name),
            "Ingress" => self.ingresses.get_mut(place).map(|ingress| &mut ingress.name),
            _ => self.pods.get_mut(place).map(|pod| &mut pod.name),
        };
        if let Some(kind) = kind {
            *kind = name;
        }
    }
}

/// The first name of a prefix that is free: the prefix, else with a number from 2 on.
fn free(prefix: ObjectName, taken: &[ObjectName]) -> ObjectName {
    let numbered = |number: usize| match number {
        1 => prefix,
        _ => ObjectName { name: Symbol::new(&format!("{}{number}", prefix.name)), ..prefix },
    };
    // Of one more name than are taken one is free.
    (1..=taken.len() + 1).map(numbered).find(|name| !taken.contains(name)).unwrap_or(prefix)
}

#[cfg(test)]
mod tests {
    use crate::{Manifests, read_manifests};
    use nodecast_model::text::Source;

    const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: pi-}\n\
        spec: {template: {spec: {containers: [{name: a, image: a}]}}}\n";

    fn names(manifests: &Manifests) -> Vec<&'static str> {
        manifests.jobs.iter().map(|job| job.name.name.as_str()).collect()
    }

    #[test]
    fn each_generate_name_create_is_new_object() {
        let two = || read_manifests(&Source::new("jobs.yaml", format!("{JOB}---\n{JOB}"))).unwrap();
        let mut all = Manifests::default();
        all.apply(two());
        assert_eq!(names(&all), ["pi-", "pi-2"]);
        all.apply(two());
        assert_eq!(names(&all), ["pi-", "pi-2", "pi-3", "pi-4"]);
        let places: Vec<_> = all.jobs.iter().map(|job| all.origin("Job", job.name)).collect();
        assert!(places.iter().all(Option::is_some) && places[0] != places[1] && places[0] == places[2], "{places:?}");
    }

    #[test]
    fn generated_service_applied_twice_is_two_services() {
        let text = "apiVersion: v1\nkind: Service\nmetadata: {generateName: web-}\nspec: {type: LoadBalancer}\n";
        let read = || read_manifests(&Source::new("web.yaml", text)).unwrap();
        let mut all = Manifests::default();
        all.apply(read());
        all.apply(read());
        assert_eq!(all.load_balancers().len(), 2);
    }

    #[test]
    fn a_name_that_is_stated_is_applied_again() {
        let named = || read_manifests(&Source::new("job.yaml", JOB.replace("generateName: pi-", "name: pi"))).unwrap();
        let mut all = Manifests::default();
        all.apply(named());
        all.apply(named());
        assert_eq!(names(&all), ["pi"]);
    }
}

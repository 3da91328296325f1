//! One bin's content that is worth as much as possible, put together greedily.

use super::{Compiled, Content, Shelf, fitting};

/// Scratch space and the counts of what is left to pack.
pub(super) struct Filler {
    /// Kinds still in the running: the kind, how many more may go in.
    active: Vec<(u32, u32)>,
    room: Vec<f64>,
    inverse: Vec<f64>,
    /// Items looked at since the last call of [`Filler::steps`].
    steps: usize,
}

impl Filler {
    pub(super) fn new(resources: usize) -> Self {
        Self { active: Vec::new(), room: vec![0.0; resources], inverse: vec![0.0; resources], steps: 0 }
    }

    /// The steps done since this was last asked.
    pub(super) fn steps(&mut self) -> usize {
        std::mem::take(&mut self.steps)
    }

    /// Fills the empty bin; `left` says how many there are of each kind, if not as many as in the problem. The content and
    /// its worth at `prices`.
    ///
    /// The next kind is the one worth most for what it takes, each resource weighed by how little of it is left: this keeps
    /// the resources in step, so that none runs out long before the others.
    pub(super) fn fill(
        &mut self,
        compiled: &Compiled<'_>,
        shelf: &Shelf,
        prices: &[f64],
        left: Option<&[u32]>,
    ) -> (Content, f64) {
        self.room.clone_from(&shelf.capacity);
        self.active.clear();
        for (&item, &most) in shelf.items.iter().zip(&shelf.most) {
            let most = left.map_or(most, |left| most.min(left[item as usize]));
            if most > 0 && prices[item as usize] > 0.0 {
                self.active.push((item, most));
            }
        }
        self.steps += shelf.items.len() / 8 + 1;
        let mut content: Content = Vec::new();
        let mut worth = 0.0;
        while let Some(position) = self.next(compiled, prices) {
            let (item, most) = self.active[position];
            let size = compiled.size(item as usize);
            let fits = fitting(size, &self.room).min(f64::from(most)) as u32;
            let number = (fits / 6).max(1);
            for (room, size) in self.room.iter_mut().zip(size) {
                *room -= size * f64::from(number);
            }
            worth += prices[item as usize] * f64::from(number);
            match content.iter_mut().find(|(key, _)| *key == item) {
                Some(entry) => entry.1 += number,
                None => content.push((item, number)),
            }
            if number == most {
                self.active.swap_remove(position);
            } else {
                self.active[position].1 -= number;
            }
        }
        (content, worth)
    }

    /// The position of the next kind to put in; kinds without room leave the running.
    fn next(&mut self, compiled: &Compiled<'_>, prices: &[f64]) -> Option<usize> {
        for (inverse, room) in self.inverse.iter_mut().zip(&self.room) {
            *inverse = if *room > 0.0 { 1.0 / room } else { 0.0 };
        }
        let mut best: Option<(f64, usize)> = None;
        let mut position = 0;
        while let Some(&(item, _)) = self.active.get(position) {
            self.steps += 2;
            let size = compiled.size(item as usize);
            let mut takes = 0.0;
            let mut fits = true;
            for ((size, room), inverse) in size.iter().zip(&self.room).zip(&self.inverse) {
                fits &= size <= room;
                takes += size * inverse;
            }
            if !fits {
                self.active.swap_remove(position);
                continue;
            }
            let score = prices[item as usize] / takes.max(1e-12);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, position));
            }
            position += 1;
        }
        best.map(|(_, position)| position)
    }
}

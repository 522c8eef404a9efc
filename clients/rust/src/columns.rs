//! Columns of configurations and of what was measured: checked, put together and cut.

use std::{iter, mem};

use crate::{
    error::{Error, Result},
    v1,
};

/// A message of columns. Each is empty, or has one entry for all rows, or one per row; what is `spread` has one per row.
pub(crate) trait Columns: Default {
    /// The longest column sets it.
    fn rows_count(&self) -> usize;
    /// That every column fits to so many rows.
    fn check(&self, rows: usize, path: &str) -> Result<()>;
    /// Gives every column that is stated an entry per row.
    fn spread(&mut self, rows: usize);
    /// Names of the columns that are stated. Only rows that state the same may stand together: absence has a meaning.
    fn stated(&self) -> Vec<&'static str>;
    /// Adds rows that state the same.
    fn append(&mut self, other: Self);
    /// Takes the rows from one on away.
    fn split_off(&mut self, at: usize) -> Self;
}

fn spread<T: Clone>(column: &mut Vec<T>, rows: usize) {
    if let [only] = column.as_slice() {
        *column = vec![only.clone(); rows];
    }
}

fn check_length(found: usize, rows: usize, path: &str, name: &str) -> Result<()> {
    if found <= 1 || found == rows {
        return Ok(());
    }
    Err(Error::invalid(
        format!("{path}{name}"),
        format!("it has {found} entries for {rows} rows; give none, one or {rows}"),
    ))
}

macro_rules! measured {
    ($kind:path { $($column:ident),* $(,)? }) => {
        impl Columns for $kind {
            fn rows_count(&self) -> usize {
                let rows = self.configurations.as_ref().map_or(0, Columns::rows_count);
                [rows, $(self.$column.len()),*].into_iter().max().unwrap_or_default()
            }

            fn check(&self, rows: usize, path: &str) -> Result<()> {
                $(check_length(self.$column.len(), rows, path, stringify!($column))?;)*
                self.configurations.as_ref().map_or(Ok(()), |ran| ran.check(rows, &format!("{path}configurations.")))
            }

            fn spread(&mut self, rows: usize) {
                $(spread(&mut self.$column, rows);)*
                self.configurations.get_or_insert_default().spread(rows);
            }

            fn stated(&self) -> Vec<&'static str> {
                let mut stated = self.configurations.as_ref().map_or_else(Vec::new, Columns::stated);
                $(stated.extend((!self.$column.is_empty()).then_some(stringify!($column)));)*
                stated
            }

            fn append(&mut self, other: Self) {
                $(self.$column.extend(other.$column);)*
                self.configurations.get_or_insert_default().append(other.configurations.unwrap_or_default());
            }

            fn split_off(&mut self, at: usize) -> Self {
                Self {
                    $($column: split(&mut self.$column, at),)*
                    configurations: self.configurations.as_mut().map(|ran| ran.split_off(at)),
                }
            }
        }
    };
}

macro_rules! configurations {
    ($kind:path { $($column:ident),* $(,)? }) => {
        impl Columns for $kind {
            fn rows_count(&self) -> usize {
                let packed = [&self.placement_offsets, &self.group_offsets].map(|offsets| offsets.len().saturating_sub(1));
                let named = [&self.device_names, &self.offer_names].map(|names| names.len().min(1));
                let indexes = [self.device_indexes.len(), self.offer_indexes.len()];
                let plain = [$(self.$column.len()),*];
                packed.into_iter().chain(named).chain(indexes).chain(plain).max().unwrap_or_default()
            }

            fn check(&self, rows: usize, path: &str) -> Result<()> {
                $(check_length(self.$column.len(), rows, path, stringify!($column))?;)*
                self.check_packed(rows, path)
            }

            fn spread(&mut self, rows: usize) {
                $(spread(&mut self.$column, rows);)*
                self.spread_packed(rows);
            }

            fn stated(&self) -> Vec<&'static str> {
                let mut stated = self.stated_packed();
                $(stated.extend((!self.$column.is_empty()).then_some(stringify!($column)));)*
                stated
            }

            fn append(&mut self, mut other: Self) {
                $(self.$column.append(&mut other.$column);)*
                self.append_packed(other);
            }

            fn split_off(&mut self, at: usize) -> Self {
                let mut rest = self.split_off_packed(at);
                $(rest.$column = split(&mut self.$column, at);)*
                rest
            }
        }
    };
}

include!("gen/columns.rs");

/// Columns of several entries a row, and dictionaries with indexes into them.
impl v1::Configurations {
    fn check_packed(&self, rows: usize, path: &str) -> Result<()> {
        check_length(self.device_indexes.len(), rows, path, "device_indexes")?;
        check_length(self.offer_indexes.len(), rows, path, "offer_indexes")?;
        check_indexes(&self.device_indexes, &self.device_names, path, "device_indexes")?;
        check_indexes(&self.group_device_indexes, &self.device_names, path, "group_device_indexes")?;
        check_indexes(&self.offer_indexes, &self.offer_names, path, "offer_indexes")?;
        let groups = self.group_workers.len();
        check_length(self.group_compute_factors.len(), groups, path, "group_compute_factors")?;
        if !self.group_device_indexes.is_empty() {
            check_length(self.group_device_indexes.len(), groups, path, "group_device_indexes")?;
        }
        check_offsets(
            &self.placement_offsets,
            self.placement_workers.len(),
            rows,
            path,
            "placement_offsets",
        )?;
        check_offsets(&self.group_offsets, groups, rows, path, "group_offsets")
    }

    fn spread_packed(&mut self, rows: usize) {
        for (names, indexes, is_of_groups) in [
            (&self.device_names, &mut self.device_indexes, !self.group_device_indexes.is_empty()),
            (&self.offer_names, &mut self.offer_indexes, false),
        ] {
            spread(indexes, rows);
            if indexes.is_empty() && !names.is_empty() && !is_of_groups {
                *indexes = vec![0; rows];
            }
        }
        spread(&mut self.group_compute_factors, self.group_workers.len());
    }

    fn stated_packed(&self) -> Vec<&'static str> {
        let packed = [
            ("device_names", !self.device_indexes.is_empty()),
            ("offer_names", !self.offer_indexes.is_empty()),
            ("placement_workers", !self.placement_offsets.is_empty()),
            ("group_workers", !self.group_offsets.is_empty()),
            ("group_device_indexes", !self.group_device_indexes.is_empty()),
            ("group_compute_factors", !self.group_compute_factors.is_empty()),
        ];
        packed
            .into_iter()
            .filter_map(|(name, is_stated)| is_stated.then_some(name))
            .collect()
    }

    fn append_packed(&mut self, other: Self) {
        let devices = merged(&mut self.device_names, other.device_names);
        self.device_indexes.extend(translated(&devices, other.device_indexes));
        self.group_device_indexes.extend(translated(&devices, other.group_device_indexes));
        let offers = merged(&mut self.offer_names, other.offer_names);
        self.offer_indexes.extend(translated(&offers, other.offer_indexes));
        join_offsets(&mut self.placement_offsets, other.placement_offsets);
        self.placement_workers.extend(other.placement_workers);
        join_offsets(&mut self.group_offsets, other.group_offsets);
        self.group_workers.extend(other.group_workers);
        self.group_compute_factors.extend(other.group_compute_factors);
    }

    fn split_off_packed(&mut self, at: usize) -> Self {
        let (placement_offsets, placement_at) = split_offsets(&mut self.placement_offsets, at);
        let (group_offsets, group_at) = split_offsets(&mut self.group_offsets, at);
        Self {
            device_names: self.device_names.clone(),
            device_indexes: split(&mut self.device_indexes, at),
            offer_names: self.offer_names.clone(),
            offer_indexes: split(&mut self.offer_indexes, at),
            placement_offsets,
            placement_workers: split(&mut self.placement_workers, placement_at),
            group_offsets,
            group_workers: split(&mut self.group_workers, group_at),
            group_device_indexes: split(&mut self.group_device_indexes, group_at),
            group_compute_factors: split(&mut self.group_compute_factors, group_at),
            ..Self::default()
        }
    }
}

fn split<T>(column: &mut Vec<T>, at: usize) -> Vec<T> {
    column.split_off(at.min(column.len()))
}

fn check_indexes(indexes: &[i32], names: &[String], path: &str, name: &str) -> Result<()> {
    let wrong = indexes
        .iter()
        .position(|index| usize::try_from(*index).map_or(true, |index| index >= names.len()));
    wrong.map_or(Ok(()), |row| {
        let found = indexes[row];
        let most = names.len();
        Err(Error::invalid(
            format!("{path}{name}[{row}]"),
            format!("it must name one of {most} entries, found {found}"),
        ))
    })
}

fn check_offsets(offsets: &[i32], entries: usize, rows: usize, path: &str, name: &str) -> Result<()> {
    let is_right = offsets.len() == rows + 1
        && offsets.first() == Some(&0)
        && offsets.is_sorted()
        && offsets.last().map(|last| *last as usize) == Some(entries);
    if is_right || (offsets.is_empty() && entries == 0) {
        return Ok(());
    }
    let text = format!(
        "give {} offsets that ascend from 0 to {entries}, as there are {rows} rows",
        rows + 1
    );
    Err(Error::invalid(format!("{path}{name}"), text))
}

/// Adds names to a dictionary; gives where each of them stands in it.
fn merged(names: &mut Vec<String>, others: Vec<String>) -> Vec<i32> {
    let places = others.into_iter().map(|name| {
        let found = names.iter().position(|each| *each == name);
        found.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        }) as i32
    });
    places.collect()
}

fn translated(places: &[i32], indexes: Vec<i32>) -> impl Iterator<Item = i32> {
    indexes.into_iter().map(|index| places[index as usize])
}

fn join_offsets(offsets: &mut Vec<i32>, others: Vec<i32>) {
    let base = offsets.last().copied().unwrap_or_default();
    let skipped = usize::from(!offsets.is_empty());
    offsets.extend(others.into_iter().skip(skipped).map(|offset| base + offset));
}

/// Offsets of the rows from one on, and where their entries begin.
fn split_offsets(offsets: &mut Vec<i32>, at: usize) -> (Vec<i32>, usize) {
    if offsets.is_empty() {
        return (Vec::new(), 0);
    }
    let begin = offsets[at];
    let rest = offsets[at..].iter().map(|offset| offset - begin).collect();
    offsets.truncate(at + 1);
    (rest, begin as usize)
}

/// Rows that are gathered until they are sent.
#[derive(Debug, Default)]
pub(crate) struct Gathered<C: Columns> {
    pub(crate) rows: C,
    pub(crate) count: usize,
}

impl<C: Columns> Gathered<C> {
    /// Whether rows may stand beside those that are here.
    pub(crate) fn fits(&self, rows: &C) -> bool {
        self.count == 0 || self.rows.stated() == rows.stated()
    }

    /// Adds rows that fit and are spread.
    pub(crate) fn add(&mut self, rows: C, count: usize) {
        if self.count == 0 {
            self.rows = rows;
        } else {
            self.rows.append(rows);
        }
        self.count += count;
    }

    /// What is here; `None` = nothing.
    pub(crate) fn take(&mut self) -> Option<C> {
        (mem::take(&mut self.count) > 0).then(|| mem::take(&mut self.rows))
    }
}

/// Rows in pieces of at most so many, each with an entry per row in every column that is stated.
pub(crate) fn pieces<C: Columns>(mut rows: C, most: usize, path: &str) -> Result<Vec<(C, usize)>> {
    let mut count = rows.rows_count();
    rows.check(count, path)?;
    rows.spread(count);
    let mut cut: Vec<(C, usize)> = Vec::new();
    let whole = iter::from_fn(|| {
        (count > most).then(|| {
            let begin = (count - 1) / most * most;
            let piece = (rows.split_off(begin), count - begin);
            count = begin;
            piece
        })
    });
    cut.extend(whole);
    cut.extend((count > 0).then_some((rows, count)));
    cut.reverse();
    Ok(cut)
}

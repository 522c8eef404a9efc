//! Shorter ways to make what requests hold.

use std::time::Duration;

use crate::{
    columns::Columns,
    error::{Error, Result},
    v1::{
        ConfigurationRange, ConfigurationSettings, Configurations, CountRange, FewestDevices, HighestThroughput, Knee, LeastCost,
        LeastTime, NodePool, Objective, PlacementRule, ProfileContent, ProfileSource, configuration_range::Axis, objective::Rule,
        profile_source::Source,
    },
};

impl ProfileSource {
    /// A stored profile, by its name.
    pub fn stored(profile_id: impl Into<String>) -> Self {
        Self::from(Source::ProfileId(profile_id.into()))
    }

    /// The profile itself, brought along: nothing is stored.
    pub fn inline(content: ProfileContent) -> Self {
        Self::from(Source::Content(content))
    }

    /// At least at this revision: a newer one may answer, an older one may not.
    pub fn with_minimum_revision(mut self, revision: i64) -> Self {
        self.minimum_revision = Some(revision);
        self
    }

    /// Exactly at this revision, though there are newer ones.
    pub fn with_revision(mut self, revision: i64) -> Self {
        self.revision = Some(revision);
        self
    }
}

impl From<Source> for ProfileSource {
    fn from(source: Source) -> Self {
        Self {
            source: Some(source),
            ..Self::default()
        }
    }
}

impl ConfigurationRange {
    /// One configuration per number of nodes, the last included: `over_nodes(1, 16)` is sixteen rows.
    pub fn over_nodes(first: i32, last: i32) -> Self {
        Self::over(Axis::Nodes(count_range(first, last)))
    }

    /// One configuration per number of workers, the last included; nodes follow from the placement rule.
    pub fn over_workers(first: i32, last: i32) -> Self {
        Self::over(Axis::Workers(count_range(first, last)))
    }

    fn over(axis: Axis) -> Self {
        Self {
            axis: Some(axis),
            ..Self::default()
        }
    }

    /// Every so many.
    pub fn with_step(mut self, step: i32) -> Self {
        self.counts().step = Some(step);
        self
    }

    /// Powers of two alone.
    pub fn with_powers_of_two(mut self) -> Self {
        self.counts().powers_of_two = true;
        self
    }

    /// Workers on each node.
    pub fn with_workers_per_node(mut self, workers: i32) -> Self {
        self.workers_per_node = Some(workers);
        self
    }

    /// How workers are laid over nodes.
    pub fn with_placement_rule(mut self, rule: PlacementRule) -> Self {
        self.placement_rule = rule.into();
        self
    }

    /// What all its configurations have alike.
    pub fn with_settings(mut self, settings: ConfigurationSettings) -> Self {
        self.settings = Some(settings);
        self
    }

    fn counts(&mut self) -> &mut CountRange {
        match self.axis.get_or_insert_with(|| Axis::Nodes(CountRange::default())) {
            Axis::Nodes(counts) | Axis::Workers(counts) => counts,
        }
    }
}

fn count_range(first: i32, last: i32) -> CountRange {
    CountRange {
        first,
        last,
        ..CountRange::default()
    }
}

impl Objective {
    /// Highest throughput; among equals the fewest nodes.
    pub fn highest_throughput() -> Self {
        Self::from(Rule::HighestThroughput(HighestThroughput {}))
    }

    /// Where more nodes stop paying: each further one must bring this share of what the first brings; `None` = 0.5.
    pub fn knee(share: Option<f64>) -> Self {
        Self::from(Rule::Knee(Knee { share }))
    }

    /// Least time, with at most so many nodes and at most this cost in the offers' currency; `None` = no limit.
    pub fn least_time(max_nodes: Option<i32>, max_cost: Option<f64>) -> Self {
        Self::from(Rule::LeastTime(LeastTime { max_nodes, max_cost }))
    }

    /// Least cost that finishes within this time from now; `None` = no deadline.
    pub fn least_cost(deadline: Option<Duration>) -> Self {
        let deadline_seconds = deadline.map(|deadline| deadline.as_secs_f64());
        Self::from(Rule::LeastCost(LeastCost { deadline_seconds }))
    }

    /// Fewest devices that finish within this time from now.
    pub fn fewest_devices(deadline: Duration) -> Self {
        let deadline_seconds = deadline.as_secs_f64();
        Self::from(Rule::FewestDevices(FewestDevices { deadline_seconds }))
    }

    /// Judges by the bound of the interval that holds with this probability, 0.5 to 0.9999.
    pub fn with_confidence(mut self, confidence: f64) -> Self {
        self.confidence = Some(confidence);
        self
    }

    /// Recommends at most so many times the measured scale, instead of 4; 0 = no limit.
    pub fn with_max_extrapolation_ratio(mut self, ratio: f64) -> Self {
        self.max_extrapolation_ratio = Some(ratio);
        self
    }
}

impl From<Rule> for Objective {
    fn from(rule: Rule) -> Self {
        Self {
            rule: Some(rule),
            ..Self::default()
        }
    }
}

impl NodePool {
    /// Alike nodes of a cluster with all their devices free.
    pub fn of_nodes(name: impl Into<String>, device_name: impl Into<String>, nodes: usize, devices_per_node: i32) -> Self {
        Self {
            name: name.into(),
            device_name: device_name.into(),
            available_devices: vec![devices_per_node; nodes],
            ..Self::default()
        }
    }
}

/// One configuration. What is not stated is as the job's evidence has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigurationRow {
    /// Machines that run workers.
    pub nodes: Option<i32>,
    /// Training processes in total, one per device.
    pub workers: Option<i32>,
    /// Workers on each node, e.g. `[4, 4]`; empty = packed.
    pub placement: Vec<i32>,
    /// Workers that are not alike; empty = all are alike.
    pub groups: Vec<WorkerGroup>,
    /// All else.
    pub settings: ConfigurationSettings,
}

/// Workers of a configuration that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerGroup {
    /// How many.
    pub workers: i32,
    /// Their accelerator; `None` = the row's. Either every group of some configurations names one, or none does.
    pub device_name: Option<String>,
    /// Their compute time relative to what the evidence says of their device; above 1 = slower.
    pub compute_factor: f64,
}

impl ConfigurationRow {
    /// A number of nodes.
    pub fn of_nodes(nodes: i32) -> Self {
        Self {
            nodes: Some(nodes),
            ..Self::default()
        }
    }

    /// A number of workers.
    pub fn of_workers(workers: i32) -> Self {
        Self {
            workers: Some(workers),
            ..Self::default()
        }
    }

    /// On this accelerator.
    pub fn with_device(mut self, device_name: impl Into<String>) -> Self {
        self.settings.device_name = device_name.into();
        self
    }

    /// With all else so.
    pub fn with_settings(mut self, settings: ConfigurationSettings) -> Self {
        self.settings = settings;
        self
    }
}

impl Configurations {
    /// Configurations by rows, each of which states the same.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the first row that states something else than those before it.
    pub fn from_rows(rows: impl IntoIterator<Item = ConfigurationRow>) -> Result<Self> {
        let rows: Vec<ConfigurationRow> = rows.into_iter().collect();
        let has_placement = rows.iter().any(|row| !row.placement.is_empty());
        let groups = || rows.iter().flat_map(|row| &row.groups);
        let (has_groups, has_factors) = (groups().next().is_some(), groups().any(|group| group.compute_factor != 1.0));
        let has_devices = groups().any(|group| group.device_name.is_some());
        if has_devices && groups().any(|group| group.device_name.is_none()) {
            return Err(Error::invalid("groups", "either every group names its device, or none does"));
        }
        let mut whole = Self::default();
        for (number, row) in rows.into_iter().enumerate() {
            let mut one = row.settings.into_columns();
            one.nodes.extend(row.nodes);
            one.workers.extend(row.workers);
            if has_placement {
                one.placement_offsets = vec![0, row.placement.len() as i32];
                one.placement_workers = row.placement;
            }
            one.spread(1);
            if has_groups {
                one.add_groups(row.groups, has_devices, has_factors);
            }
            if number == 0 {
                whole = one;
                continue;
            }
            // Columns of groups are there for all rows or for none; a row without groups has nothing in them.
            let of_rows = |columns: &Self| {
                columns
                    .stated()
                    .into_iter()
                    .filter(|name| !name.starts_with("group_"))
                    .collect::<Vec<_>>()
            };
            let (stated, before) = (of_rows(&one), of_rows(&whole));
            let odd = |these: &[&'static str], those: &[&str]| these.iter().copied().find(|name| !those.contains(name));
            if let Some(name) = odd(&stated, &before).or_else(|| odd(&before, &stated)) {
                let text = "it must be stated by this row and all before it, or by none";
                return Err(Error::invalid(format!("configurations[{number}].{name}"), text));
            }
            whole.append(one);
        }
        Ok(whole)
    }

    fn add_groups(&mut self, groups: Vec<WorkerGroup>, has_devices: bool, has_factors: bool) {
        self.group_offsets = vec![0, groups.len() as i32];
        for group in groups {
            self.group_workers.push(group.workers);
            if has_factors {
                self.group_compute_factors.push(group.compute_factor);
            }
            if has_devices {
                let name = group.device_name.unwrap_or_default();
                let found = self.device_names.iter().position(|each| *each == name);
                let index = found.unwrap_or_else(|| {
                    self.device_names.push(name);
                    self.device_names.len() - 1
                });
                self.group_device_indexes.push(index as i32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(nodes: i32, device: &str) -> ConfigurationRow {
        ConfigurationRow::of_nodes(nodes).with_device(device)
    }

    #[test]
    fn rows_become_columns_with_dictionaries_and_offsets() {
        let slow = WorkerGroup {
            workers: 1,
            device_name: None,
            compute_factor: 1.5,
        };
        let mut rows = vec![row(1, "V100"), row(2, "A100"), row(4, "V100")];
        rows[1].placement = vec![4, 4];
        rows[2].groups = vec![slow];
        let found = Configurations::from_rows(rows).expect("configurations");
        let expected = Configurations {
            nodes: vec![1, 2, 4],
            device_names: vec!["V100".into(), "A100".into()],
            device_indexes: vec![0, 1, 0],
            placement_offsets: vec![0, 0, 2, 2],
            placement_workers: vec![4, 4],
            group_offsets: vec![0, 0, 0, 1],
            group_workers: vec![1],
            group_compute_factors: vec![1.5],
            ..Configurations::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_row_that_states_something_else_is_named() {
        let rows = [
            ConfigurationRow::of_nodes(1),
            ConfigurationRow::of_nodes(2),
            ConfigurationRow::of_workers(2),
        ];
        let error = Configurations::from_rows(rows).expect_err("an odd row");
        assert_eq!(error.violations()[0].field, "configurations[2].workers");
    }

    #[test]
    fn pieces_have_all_rows_in_order() {
        let mut rows: Vec<_> = (1..=7).map(|nodes| row(nodes, if nodes % 2 == 0 { "A" } else { "B" })).collect();
        rows[5].placement = vec![1, 2];
        let whole = Configurations::from_rows(rows).expect("configurations");
        let pieces = crate::columns::pieces(whole.clone(), 3, "").expect("pieces");
        assert_eq!(pieces.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [3, 3, 1]);
        let mut joined = crate::columns::Gathered::default();
        for (piece, count) in pieces {
            assert!(joined.fits(&piece));
            joined.add(piece, count);
        }
        assert_eq!(joined.take(), Some(whole));
    }

    #[test]
    fn a_column_that_does_not_fit_is_named() {
        let wrong = Configurations {
            nodes: vec![1, 2, 3],
            workers: vec![1, 2],
            ..Configurations::default()
        };
        let error = crate::columns::pieces(wrong, 10, "observations.").expect_err("two for three");
        assert_eq!(error.violations()[0].field, "observations.workers");
    }
}

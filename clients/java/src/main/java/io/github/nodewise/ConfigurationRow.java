package io.github.nodewise;

import io.github.nodewise.v1.ConfigurationSettings;
import java.util.List;

/**
 * One candidate configuration.
 *
 * @param nodes machines that run workers; 0 = as many as the workers need
 * @param workers training processes in total, one per device; 0 = nodes times the job's workers per
 *     node
 * @param settings everything else; what it leaves out is as in the job's evidence
 * @param placement workers on each node; empty = packed
 */
public record ConfigurationRow(
    int nodes, int workers, ConfigurationSettings settings, List<Integer> placement) {

  /**
   * Packed, and everything else as in the job's evidence.
   *
   * @param nodes machines that run workers
   * @param workers training processes in total
   */
  public ConfigurationRow(int nodes, int workers) {
    this(nodes, workers, ConfigurationSettings.getDefaultInstance());
  }

  /**
   * Packed.
   *
   * @param nodes machines that run workers
   * @param workers training processes in total
   * @param settings everything else
   */
  public ConfigurationRow(int nodes, int workers, ConfigurationSettings settings) {
    this(nodes, workers, settings, List.of());
  }
}

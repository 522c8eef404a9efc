/** Devices as they are written in one line: "h100=4x8" is up to 4 nodes of 8 H100 each. */
export interface PoolText {
  deviceName: string;
  nodes: number;
  devicesPerNode: number;
}

/**
 * Pools from text, with commas between them.
 *
 * @throws Error that shows what is right
 */
export function poolsOf(text: string): PoolText[] {
  return text
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean)
    .map((each) => {
      const [, deviceName, nodes, devicesPerNode] = /^([^=]+)=(\d+)x(\d+)$/.exec(each) ?? [];
      if (!deviceName || !Number(nodes) || !Number(devicesPerNode))
        throw new Error(`Devices: "${each}" must be DEVICE=NODESxDEVICES, such as h100=4x8.`);
      return { deviceName: deviceName.trim(), nodes: Number(nodes), devicesPerNode: Number(devicesPerNode) };
    });
}

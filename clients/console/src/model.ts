import type { MessageInitShape } from "@bufbuild/protobuf";
import type { WorkloadSchema } from "@nodewise/client/v1";

type WorkloadInit = MessageInitShape<typeof WorkloadSchema>;

// Families whose config.json states all dimensions by the usual keys. The command line reads all families.
const GATED = [
  "llama",
  "mistral",
  "mixtral",
  "qwen2",
  "qwen2_moe",
  "qwen3",
  "qwen3_moe",
  "phi3",
  "olmo2",
  "granite",
  "cohere",
];
const TIED_BY_DEFAULT = ["cohere"];
const PRECISIONS: Record<string, string> = { float32: "fp32", float16: "fp16", bfloat16: "bf16" };

/**
 * The workload that a `config.json` of Hugging Face transformers describes.
 *
 * @param sequence tokens per sample; undefined = the longest that the model takes
 * @throws Error that names the key that is missing or not supported
 */
export function workloadOf(text: string, sequence: number | undefined): WorkloadInit {
  let config: Record<string, unknown>;
  try {
    config = JSON.parse(text);
  } catch {
    throw new Error("The file is not valid JSON. Give the config.json of a model.");
  }
  const family = String(config.model_type ?? "");
  if (!GATED.includes(family))
    throw new Error(
      `model_type: ${family || "missing"} is not read here (${GATED.join(", ")} are). ` +
        "`nodewise plan config.json` reads all families.",
    );
  const whole = (key: string, otherwise?: number): number => {
    const value = config[key] ?? otherwise;
    if (!Number.isInteger(value) || (value as number) < 1) throw new Error(`${key}: must be a whole number of at least 1.`);
    return value as number;
  };
  const heads = whole("num_attention_heads");
  const experts = (config.num_local_experts ?? config.num_experts) as number | undefined;
  const expertWidth = (config.moe_intermediate_size ?? (family === "mixtral" ? config.intermediate_size : undefined)) as
    | number
    | undefined;
  const shared = config.shared_expert_intermediate_size as number | undefined;
  const precision = PRECISIONS[String(config.torch_dtype ?? config.dtype ?? "")];
  return {
    modelName: String(config._name_or_path || family).slice(0, 256),
    ...(precision ? { precision } : {}),
    transformer: {
      layersCount: whole("num_hidden_layers"),
      hiddenSize: whole("hidden_size"),
      attentionHeadsCount: heads,
      keyValueHeadsCount: whole("num_key_value_heads", heads),
      sequenceLengthTokens: sequence ?? whole("max_position_embeddings"),
      vocabularySize: whole("vocab_size"),
      feedForwardSize: whole("intermediate_size"),
      ...(config.head_dim || family.startsWith("qwen3") ? { headSize: whole("head_dim", 128) } : {}),
      gatedFeedForward: true,
      untiedEmbeddings: !(config.tie_word_embeddings ?? TIED_BY_DEFAULT.includes(family)),
      ...(experts ? { expertsCount: experts, expertsPerTokenCount: whole("num_experts_per_tok") } : {}),
      ...(experts && expertWidth ? { expertFeedForwardSize: expertWidth } : {}),
      ...(experts && shared ? { sharedExpertFeedForwardSize: shared } : {}),
    },
  };
}

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

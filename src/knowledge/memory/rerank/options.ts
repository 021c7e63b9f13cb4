import * as kinds from "../../../config/kinds.ts";
import { option, optional } from "../../../config/option.ts";
import { modelId } from "../model-id.ts";

export const RERANK_OPTIONS = {
  rerankModel: optional({
    env: "ENGINE_RERANK_MODEL",
    toml: "rerank.model",
    kind: modelId,
    whenUnset: "no reranking",
    side: "SC",
    doc:
      "The id of the model (a cross-encoder) that rates the best memories of each recall anew, by question and text. " +
      "`ENGINE_RERANK_MODEL_PATH` must have it.",
  }),
  rerankModelPath: optional({
    env: "ENGINE_RERANK_MODEL_PATH",
    toml: "rerank.model_path",
    kind: kinds.path,
    whenUnset: "no reranking",
    side: "SC",
    doc:
      "A folder with `model.onnx` and `tokenizer.json` of the reranking model. `onnxruntime-node` and " +
      "`@huggingface/tokenizers` must be installed there, or beside this program.",
  }),
  rerankPoolSize: option({
    env: "ENGINE_RERANK_POOL_SIZE",
    toml: "rerank.pool_size",
    kind: kinds.integer({ min: 1, max: 64 }),
    default: 1,
    side: "SC",
    doc:
      "Sessions of the reranking model that run in parallel, each on a thread and with a copy of the model. A recall " +
      "that finds no session free within half a second is not reranked.",
  }),
} as const;

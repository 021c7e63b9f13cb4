import type { OptionValues } from "../../../config/option.ts";
import { findModel, type ModelFiles } from "../onnx/model-folder.ts";
import type { RERANK_OPTIONS } from "./options.ts";

/** A model that reranks. Goes to threads as it is. */
export type RerankModel = { id: string; files: ModelFiles; sessions: number };

/** What reranks, or why nothing does; no reason where nobody asked for it. */
export type RerankSetup = { model: RerankModel } | { off: string | undefined };

/** What reranks, by the configuration. */
export function rerankSetup({
  rerankModel: id,
  rerankModelPath: folder,
  rerankPoolSize: sessions,
}: OptionValues<typeof RERANK_OPTIONS>): RerankSetup {
  if (id === undefined) {
    const off = folder === undefined ? undefined : "ENGINE_RERANK_MODEL_PATH has no effect without ENGINE_RERANK_MODEL";
    return { off };
  }
  if (folder === undefined) return { off: `no folder has the model ${id}: set ENGINE_RERANK_MODEL_PATH` };
  const files = findModel(folder, "ENGINE_RERANK_MODEL_PATH");
  return "off" in files ? files : { model: { id, files, sessions } };
}

import { statSync } from "node:fs";
import { basename } from "node:path";
import { messageOf } from "../../../core/errors.ts";
import { findModel, type ModelFiles } from "../onnx/model-folder.ts";
import { inputsOf, jsonBeside, loadModel, shortened, type OnnxModel, type Tensor } from "../onnx/onnx-model.ts";
import type { EmbedSetup } from "./embedding.ts";
import { EmbedFailure, type EmbedProvider } from "./provider.ts";

/** Runs an ONNX model in this process. */
export function onnxProvider(folder: string): EmbedSetup {
  const found = findModel(folder, "ENGINE_EMBED_MODEL_PATH");
  if ("off" in found) return found;
  // Another model in the folder of the same name is told apart by its size.
  const name = `fastembed/${basename(folder)}@${statSync(found.model).size}`;
  return { provider: new OnnxProvider(name, found) };
}

type Loaded = OnnxModel & { usesFirst: boolean };

class OnnxProvider implements EmbedProvider {
  readonly model: string;
  readonly #files: ModelFiles;
  #loaded: Promise<Loaded> | undefined;
  readonly #running = new Set<Promise<unknown>>();

  constructor(model: string, files: ModelFiles) {
    this.model = model;
    this.#files = files;
  }

  async embed(texts: readonly string[]): Promise<readonly unknown[]> {
    const run = this.#run(texts);
    this.#running.add(run);
    try {
      return await run;
    } finally {
      this.#running.delete(run);
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#running);
    const loaded = await this.#loaded?.catch(() => undefined);
    await loaded?.session.release?.();
  }

  async #run(texts: readonly string[]): Promise<readonly unknown[]> {
    this.#loaded ??= load(this.#files);
    try {
      const { usesFirst, ...model } = await this.#loaded;
      const { session, tokenizer } = model;
      const encodings = texts.map((text) => shortened({ ids: tokenizer.encode(text).ids }));
      const { feeds, length } = inputsOf(encodings, model);
      const outputs = await session.run(feeds);
      const output =
        outputs["sentence_embedding"] ?? outputs["last_hidden_state"] ?? outputs[session.outputNames[0] ?? ""];
      if (output === undefined) throw new Error("the model has no output");
      return encodings.map(({ ids }, i) => pooled(output, i, { count: ids.length, length, usesFirst }));
    } catch (error) {
      throw new EmbedFailure("unusable", `the model ${this.model} failed: ${messageOf(error)}`, { cause: error });
    }
  }
}

async function load(files: ModelFiles): Promise<Loaded> {
  const pooling = await jsonBeside(files.folder, "1_Pooling/config.json");
  const { pooling_mode_cls_token } = (pooling ?? {}) as { pooling_mode_cls_token?: unknown };
  return { ...(await loadModel(files)), usesFirst: pooling_mode_cls_token === true };
}

/** The vector of a text: as the model gives it, that of its first token, or the mean of all. */
function pooled(
  { data, dims }: Tensor,
  row: number,
  { count, length, usesFirst }: { count: number; length: number; usesFirst: boolean },
): Float32Array {
  const width = dims.at(-1) ?? 0;
  const vector = new Float32Array(width);
  const perToken = dims.length === 3;
  const used = perToken && !usesFirst ? count : 1;
  const start = perToken ? row * length * width : row * width;
  for (let token = 0; token < used; token++) {
    for (let i = 0; i < width; i++) {
      vector[i] = (vector[i] ?? 0) + (data[start + token * width + i] ?? Number.NaN) / used;
    }
  }
  return vector;
}

import { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { messageOf } from "../../../core/errors.ts";
import type { EmbedSetup } from "./embedding.ts";
import { EmbedFailure, type EmbedProvider } from "./provider.ts";

/**
 * Runs an ONNX model in this process. The runtime downloads while it is installed, so it is no dependency of this
 * program: who wants it installs it beside the model, or beside the program.
 */
export function onnxProvider(folder: string): EmbedSetup {
  const model = ["model.onnx", "onnx/model.onnx"].map((name) => join(folder, name)).find((path) => existsSync(path));
  const tokenizer = join(folder, "tokenizer.json");
  if (model === undefined || !existsSync(tokenizer)) {
    return { off: `${folder} has no model.onnx with a tokenizer.json: check ENGINE_EMBED_MODEL_PATH` };
  }
  const runtime = resolved(RUNTIME, folder);
  const tokenizers = resolved(TOKENIZERS, folder);
  if (runtime === undefined || tokenizers === undefined) {
    return { off: `${RUNTIME} and ${TOKENIZERS} are not installed: install them in ${folder}` };
  }
  // Another model in the folder of the same name is told apart by its size.
  const name = `fastembed/${basename(folder)}@${statSync(model).size}`;
  return { provider: new OnnxProvider(name, { model, tokenizer, folder, runtime, tokenizers }) };
}

const RUNTIME = "onnxruntime-node";
const TOKENIZERS = "@huggingface/tokenizers";

function resolved(name: string, folder: string): string | undefined {
  for (const from of [pathToFileURL(join(folder, "package.json")), import.meta.url]) {
    try {
      return createRequire(from).resolve(name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
}

type Files = { model: string; tokenizer: string; folder: string; runtime: string; tokenizers: string };

/** What is used of the runtime. */
type Tensor = { data: ArrayLike<number>; dims: readonly number[] };
type Session = {
  inputNames: readonly string[];
  outputNames: readonly string[];
  run(feeds: Record<string, unknown>): Promise<Record<string, Tensor>>;
  release?(): Promise<void>;
};
type Runtime = {
  InferenceSession: { create(path: string): Promise<Session> };
  Tensor: new (type: "int64", data: BigInt64Array, dims: readonly number[]) => unknown;
};
type Tokenizer = { encode(text: string): { ids: readonly number[] } };
type Tokenizers = { Tokenizer: new (tokenizer: unknown, config: unknown) => Tokenizer };

type Loaded = { session: Session; tensor: Runtime["Tensor"]; tokenizer: Tokenizer; usesFirst: boolean };

/** Tokens of a text, the first ones: what most such models read. */
const MOST_TOKENS = 512;

class OnnxProvider implements EmbedProvider {
  readonly model: string;
  readonly #files: Files;
  #loaded: Promise<Loaded> | undefined;
  readonly #running = new Set<Promise<unknown>>();

  constructor(model: string, files: Files) {
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
      const { session, tensor, tokenizer, usesFirst } = await this.#loaded;
      const tokens = texts.map((text) => shortened(tokenizer.encode(text).ids));
      const { feeds, length } = inputsOf(tokens, session.inputNames, tensor);
      const outputs = await session.run(feeds);
      const output =
        outputs["sentence_embedding"] ?? outputs["last_hidden_state"] ?? outputs[session.outputNames[0] ?? ""];
      if (output === undefined) throw new Error("the model has no output");
      return tokens.map((ids, i) => pooled(output, i, { count: ids.length, length, usesFirst }));
    } catch (error) {
      throw new EmbedFailure("unusable", `the model ${this.model} failed: ${messageOf(error)}`, { cause: error });
    }
  }
}

async function load({ model, tokenizer, folder, runtime, tokenizers }: Files): Promise<Loaded> {
  const loaded = createRequire(import.meta.url);
  const { InferenceSession, Tensor: tensor } = loaded(runtime) as Runtime;
  const { Tokenizer } = loaded(tokenizers) as Tokenizers;
  const configPath = join(folder, "tokenizer_config.json");
  const config = existsSync(configPath) ? await jsonIn(configPath) : {};
  const poolingPath = join(folder, "1_Pooling/config.json");
  const pooling = existsSync(poolingPath) ? await jsonIn(poolingPath) : {};
  return {
    session: await InferenceSession.create(model),
    tensor,
    tokenizer: new Tokenizer(await jsonIn(tokenizer), config),
    usesFirst: (pooling as { pooling_mode_cls_token?: unknown }).pooling_mode_cls_token === true,
  };
}

async function jsonIn(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, "utf8")) as unknown;
}

/** With its last token, which ends the text for the model. */
function shortened(ids: readonly number[]): readonly number[] {
  return ids.length <= MOST_TOKENS ? ids : [...ids.slice(0, MOST_TOKENS - 1), ids.at(-1) ?? 0];
}

/** As a rectangle: shorter texts end with tokens that the mask leaves out. */
function inputsOf(
  tokens: readonly (readonly number[])[],
  names: readonly string[],
  tensor: Runtime["Tensor"],
): { feeds: Record<string, unknown>; length: number } {
  const length = Math.max(1, ...tokens.map((ids) => ids.length));
  const ids = new BigInt64Array(tokens.length * length);
  const mask = new BigInt64Array(tokens.length * length);
  for (const [row, own] of tokens.entries()) {
    for (const [i, id] of own.entries()) {
      ids[row * length + i] = BigInt(id);
      mask[row * length + i] = 1n;
    }
  }
  const dims = [tokens.length, length];
  const all: Record<string, BigInt64Array> = {
    input_ids: ids,
    attention_mask: mask,
    token_type_ids: new BigInt64Array(ids.length),
  };
  const feeds = names.flatMap((name) => {
    const data = all[name];
    return data === undefined ? [] : [[name, new tensor("int64", data, dims)] as const];
  });
  return { feeds: Object.fromEntries(feeds), length };
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

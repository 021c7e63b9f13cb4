import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { ModelFiles } from "./model-folder.ts";

/** What is used of the runtime. It computes on the thread that calls it, which does nothing else meanwhile. */
export type Tensor = { type?: string; data: ArrayLike<number>; dims: readonly number[] };
type Session = {
  inputNames: readonly string[];
  outputNames: readonly string[];
  run(feeds: Record<string, unknown>): Promise<Record<string, Tensor>>;
  release?(): Promise<void>;
};
type Runtime = {
  InferenceSession: { create(path: string, options?: SessionOptions): Promise<Session> };
  Tensor: new (type: "int64", data: BigInt64Array, dims: readonly number[]) => unknown;
};
type Tokenizer = {
  encode(text: string, options?: { text_pair?: string; return_token_type_ids?: boolean }): Encoding;
};
type Tokenizers = { Tokenizer: new (tokenizer: unknown, config: unknown) => Tokenizer };

/** The tokens of a text, or of a pair of texts; `token_type_ids` tells those of the second one apart. */
export type Encoding = { ids: readonly number[]; token_type_ids?: readonly number[] };

export type SessionOptions = { intraOpNumThreads?: number };

export type OnnxModel = { session: Session; tensor: Runtime["Tensor"]; tokenizer: Tokenizer };

/** Tokens of an input, the first ones: what most such models read. */
const MOST_TOKENS = 512;

export async function loadModel(
  { model, tokenizer, folder, runtime, tokenizers }: ModelFiles,
  options: SessionOptions = {},
): Promise<OnnxModel> {
  const load = createRequire(import.meta.url);
  const { InferenceSession, Tensor: tensor } = load(runtime) as Runtime;
  const { Tokenizer } = load(tokenizers) as Tokenizers;
  const config = (await jsonBeside(folder, "tokenizer_config.json")) ?? {};
  return {
    session: await InferenceSession.create(model, options),
    tensor,
    tokenizer: new Tokenizer(await jsonIn(tokenizer), config),
  };
}

/** Undefined when there is no such file. */
export async function jsonBeside(folder: string, name: string): Promise<unknown> {
  const path = join(folder, name);
  return existsSync(path) ? await jsonIn(path) : undefined;
}

async function jsonIn(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, "utf8")) as unknown;
}

/** As many tokens as a model reads, with the last one, which ends the text for it. */
export function shortened({ ids, token_type_ids }: Encoding): Encoding {
  return { ids: cut(ids), ...(token_type_ids !== undefined && { token_type_ids: cut(token_type_ids) }) };
}

function cut(values: readonly number[]): readonly number[] {
  return values.length <= MOST_TOKENS ? values : [...values.slice(0, MOST_TOKENS - 1), values.at(-1) ?? 0];
}

/** As a rectangle: shorter inputs end with tokens that the mask leaves out. */
export function inputsOf(
  encodings: readonly Encoding[],
  { session, tensor }: Pick<OnnxModel, "session" | "tensor">,
): { feeds: Record<string, unknown>; length: number } {
  const length = Math.max(1, ...encodings.map(({ ids }) => ids.length));
  const rectangle = (valueOf: (encoding: Encoding, i: number) => number): BigInt64Array => {
    const values = new BigInt64Array(encodings.length * length);
    for (const [row, encoding] of encodings.entries()) {
      for (let i = 0; i < encoding.ids.length; i++) values[row * length + i] = BigInt(valueOf(encoding, i));
    }
    return values;
  };
  const all: Record<string, () => BigInt64Array> = {
    input_ids: () => rectangle(({ ids }, i) => ids[i] ?? 0),
    attention_mask: () => rectangle(() => 1),
    token_type_ids: () => rectangle(({ token_type_ids: types }, i) => types?.[i] ?? 0),
  };
  const dims = [encodings.length, length];
  const feeds = session.inputNames.flatMap((name) => {
    const valuesOf = all[name];
    return valuesOf === undefined ? [] : [[name, new tensor("int64", valuesOf(), dims)] as const];
  });
  return { feeds: Object.fromEntries(feeds), length };
}

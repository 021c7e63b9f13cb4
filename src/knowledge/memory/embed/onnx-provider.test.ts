import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { onnxProvider } from "./onnx-provider.ts";
import type { EmbedProvider } from "./provider.ts";

/** A model of a folder, with a runtime that is scripted: the real one is no dependency. */

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "engine-model-"))));
afterEach(() => rm(folder, { recursive: true }));

const put = async (name: string, text: string) => {
  const path = join(folder, name);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, text);
};

/** Of each token a vector: the number of the token, whether the mask has it, and its place. `crash` fails. */
const RUNTIME = `
class Tensor { constructor(type, data, dims) { Object.assign(this, { type, data, dims }); } }
const InferenceSession = {
  create: async () => ({
    inputNames: ["input_ids", "attention_mask", "token_type_ids"],
    outputNames: ["last_hidden_state"],
    run: async ({ input_ids, attention_mask, token_type_ids }) => {
      const [rows, length] = input_ids.dims;
      if (input_ids.data.includes(99n)) throw new Error("crash");
      if (token_type_ids.data.some((type) => type !== 0n)) throw new Error("types");
      const data = new Float32Array(rows * length * 3);
      for (let i = 0; i < rows * length; i++) {
        data.set([Number(input_ids.data[i]), Number(attention_mask.data[i]), (i % length) + 1], i * 3);
      }
      return { last_hidden_state: { data, dims: [rows, length, 3] } };
    },
  }),
};
module.exports = { InferenceSession, Tensor };
`;
const TOKENIZERS = `
exports.Tokenizer = class {
  constructor(tokenizer) { this.offset = tokenizer.offset; }
  encode(text) { return { ids: text.split(" ").map((word) => Number(word) + this.offset) }; }
};
`;

async function putModel(): Promise<void> {
  await put("onnx/model.onnx", "12345");
  await put("tokenizer.json", '{"offset":1}');
}

async function putRuntime(): Promise<void> {
  await put("node_modules/onnxruntime-node/index.js", RUNTIME);
  await put("node_modules/@huggingface/tokenizers/index.js", TOKENIZERS);
}

async function opened(): Promise<EmbedProvider> {
  await putModel();
  await putRuntime();
  const setup = onnxProvider(folder);
  if ("off" in setup) throw new Error(setup.off);
  return setup.provider;
}

const embed = async (provider: EmbedProvider, ...texts: string[]) =>
  await provider.embed(texts, "document", new AbortController().signal);

describe("a model of a folder", () => {
  test("gives the mean of the tokens of each text, without those that fill up", async () => {
    const provider = await opened();
    const vectors = [Float32Array.of(3, 1, 2), Float32Array.of(7, 1, 1)];
    expect(await embed(provider, "1 2 3", "6")).toEqual(vectors);
    expect(provider.model).toMatch(/^fastembed\/engine-model-\w+@5$/);
    await provider.close();
  });

  test("gives the vector of the first token where its configuration says so", async () => {
    await put("1_Pooling/config.json", '{"pooling_mode_cls_token":true}');
    expect(await embed(await opened(), "4 2 3")).toEqual([Float32Array.of(5, 1, 1)]);
  });

  test("reads 512 tokens, the last one among them", async () => {
    const ids = [...Array.from({ length: 600 }, () => 0), 1_023];
    const [vector] = await embed(await opened(), ids.join(" "));
    expect((vector as Float32Array)[0]).toBeCloseTo((511 + 1_024) / 512, 4);
    expect((vector as Float32Array)[2]).toBeCloseTo(513 / 2, 4);
  });

  test("fails as other providers do", async () => {
    const failure = embed(await opened(), "98");
    await expect(failure).rejects.toMatchObject({ name: "EmbedFailure", kind: "unusable" });
    await expect(failure).rejects.toThrow(/failed: crash$/);
  });
});

describe("no model", () => {
  test("without a runtime", async () => {
    await putModel();
    expect(onnxProvider(folder)).toEqual({
      off: `onnxruntime-node and @huggingface/tokenizers are not installed: install them in ${folder}`,
    });
  });

  test("without its files", async () => {
    await putRuntime();
    const off = `${folder} has no model.onnx with a tokenizer.json: check ENGINE_EMBED_MODEL_PATH`;
    expect(onnxProvider(folder)).toEqual({ off });
    await put("tokenizer.json", "{}");
    expect(onnxProvider(folder)).toEqual({ off });
    expect(onnxProvider(join(folder, "nothing"))).toMatchObject({ off: expect.stringContaining("/nothing has no") });
  });
});

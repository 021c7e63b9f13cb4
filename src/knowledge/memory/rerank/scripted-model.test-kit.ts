import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/**
 * A cross-encoder with a runtime that is scripted: the real one is no dependency. It counts the words of a text that are
 * in the question, and does what some words of a question say: `crash`, `exit`, `nap` (0.4 s), `sleep` (1.5 s), `odd`
 * (another shape), `nan`, `half` (another type), `two` (two numbers for each pair).
 */
const RUNTIME = `
const { existsSync } = require("node:fs");
class Tensor { constructor(type, data, dims) { Object.assign(this, { type, data, dims }); } }
const rest = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const InferenceSession = {
  create: async (path) => {
    if (existsSync(path + ".broken")) throw new Error("the file is broken");
    return {
      inputNames: ["input_ids", "attention_mask", "token_type_ids"],
      outputNames: ["logits"],
      run: async ({ input_ids, attention_mask, token_type_ids }) => {
        const [rows, length] = input_ids.dims;
        if (rows > 8 || length > 512) throw new Error("too much at once: " + input_ids.dims);
        const counts = [];
        const asked = new Set();
        for (let row = 0; row < rows; row++) {
          const words = new Set();
          let count = 0;
          let last = 0n;
          for (let i = row * length; i < (row + 1) * length; i++) {
            if (attention_mask.data[i] === 0n) continue;
            last = input_ids.data[i];
            if (token_type_ids.data[i] === 0n) words.add(last), asked.add(last);
            else if (last !== 2n && words.has(last)) count++;
          }
          if (last !== 2n) throw new Error("the text has no end");
          counts.push(count);
        }
        if (asked.has(11n)) throw new Error("crash");
        if (asked.has(12n)) process.exit(3);
        if (asked.has(13n)) rest(400);
        if (asked.has(14n)) rest(1500);
        if (asked.has(15n)) return { logits: new Tensor("float32", new Float32Array(rows * 3), [rows, 3]) };
        if (asked.has(16n)) return { logits: new Tensor("float32", new Float32Array(rows).fill(NaN), [rows, 1]) };
        if (asked.has(17n)) return { logits: new Tensor("float16", new Uint16Array(rows), [rows, 1]) };
        if (asked.has(18n)) {
          return { logits: new Tensor("float32", Float32Array.from(counts.flatMap((n) => [1, 1 + n])), [rows, 2]) };
        }
        return { logits: new Tensor("float32", Float32Array.from(counts, (n) => 4 * n - 6), [rows, 1]) };
      },
    };
  },
};
module.exports = { InferenceSession, Tensor };
`;
const TOKENIZERS = `
const SAID = ["crash", "exit", "nap", "sleep", "odd", "nan", "half", "two"];
const numberOf = (word) => (SAID.includes(word) ? 11 + SAID.indexOf(word) : 100 + [...word].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 1e9, 0));
const numbersOf = (text) => text.toLowerCase().split(/[^a-z0-9]+/).filter(Boolean).map(numberOf);
exports.Tokenizer = class {
  encode(text, { text_pair, return_token_type_ids }) {
    if (!return_token_type_ids) throw new Error("no types");
    const [first, second] = [[1, ...numbersOf(text), 2], [...numbersOf(text_pair), 2]];
    return { ids: [...first, ...second], token_type_ids: [...first.map(() => 0), ...second.map(() => 1)] };
  }
};
`;

export async function putFile(folder: string, name: string, text: string): Promise<void> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

/** Makes the folder one for `ENGINE_RERANK_MODEL_PATH`. */
export async function putScriptedModel(folder: string): Promise<void> {
  await putFile(folder, "model.onnx", "12345");
  await putFile(folder, "tokenizer.json", "{}");
  await putFile(folder, "node_modules/onnxruntime-node/index.js", RUNTIME);
  await putFile(folder, "node_modules/@huggingface/tokenizers/index.js", TOKENIZERS);
}

import { inputsOf, shortened, type Encoding, type OnnxModel, type Tensor } from "../onnx/onnx-model.ts";
import { RERANK_LIMITS } from "./limits.ts";

/**
 * How relevant each text is to the query, from 0 to 1, by a model that reads both together. Pairs of about the same length
 * go together, since the shorter ones are filled up. `checkTime` is called between batches and may throw.
 */
export async function relevancesOf(
  model: OnnxModel,
  { query, texts }: { query: string; texts: readonly string[] },
  checkTime: () => void,
): Promise<number[]> {
  const { session, tokenizer } = model;
  const pairs = texts.map((text, place) => {
    const encoding = tokenizer.encode(query, { text_pair: text, return_token_type_ids: true });
    return { place, encoding: shortened(encoding) };
  });
  pairs.sort((a, b) => a.encoding.ids.length - b.encoding.ids.length);
  const relevances = texts.map(() => 0);
  for (let at = 0; at < pairs.length; at += RERANK_LIMITS.batchPairs) {
    checkTime();
    const batch = pairs.slice(at, at + RERANK_LIMITS.batchPairs);
    const encodings: Encoding[] = batch.map(({ encoding }) => encoding);
    const outputs = await session.run(inputsOf(encodings, model).feeds);
    const output = outputs["logits"] ?? outputs[session.outputNames[0] ?? ""];
    if (output === undefined) throw new Error("the model has no output");
    for (const [row, { place }] of batch.entries()) relevances[place] = relevance(output, row, batch.length);
  }
  return relevances;
}

/** Models give one number for each pair, or one each for "irrelevant" and "relevant". */
function relevance({ type, data, dims }: Tensor, row: number, rows: number): number {
  const width = data.length / rows;
  if (dims[0] !== rows || (width !== 1 && width !== 2)) {
    throw new Error(`the model answered ${rows} pairs with the shape ${dims.join("x")}: it is no cross-encoder`);
  }
  if (type !== undefined && type !== "float32") throw new Error(`the model answered with ${type} in place of float32`);
  const last = data[row * width + width - 1] ?? Number.NaN;
  const logit = width === 1 ? last : last - (data[row * width] ?? Number.NaN);
  if (!Number.isFinite(logit)) throw new Error("the model answered with a number that is not finite");
  return 1 / (1 + Math.exp(-logit));
}

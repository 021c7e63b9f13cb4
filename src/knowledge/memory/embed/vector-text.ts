import { textKey } from "../ids.ts";
import type { NodeRecord } from "../model.ts";

type Said = Pick<NodeRecord, "id" | "name" | "content">;

/** What a model is given of a node. */
export function embeddedText({ name, content }: Pick<Said, "name" | "content">): string {
  return name === undefined ? content : `${name}\n${content}`;
}

/** Under which key the vector of that text is stored. */
export function vectorKeyOf(node: Said): string {
  return textKey(node.id, embeddedText(node));
}

/** As a vector is stored: base64 of its 32-bit floats, the lowest byte first. */
export function vectorToText(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * FLOAT_BYTES);
  for (let i = 0; i < vector.length; i++) bytes.writeFloatLE(vector[i] ?? 0, i * FLOAT_BYTES);
  return bytes.toString("base64");
}

export function textToVector(text: string): Float32Array {
  const bytes = Buffer.from(text, "base64");
  const vector = new Float32Array(Math.floor(bytes.length / FLOAT_BYTES));
  for (let i = 0; i < vector.length; i++) vector[i] = bytes.readFloatLE(i * FLOAT_BYTES);
  return vector;
}

const FLOAT_BYTES = 4;

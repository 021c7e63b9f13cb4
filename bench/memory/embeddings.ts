import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { seededRandom } from "../../src/core/random.ts";

/** A provider of embeddings on this machine, in ollama's format, whose vectors cost next to nothing to make. */
export type Embeddings = { env: Record<string, string>; stop: () => Promise<void> };

/** A text has one of these. */
const VECTORS = 4_096;

export async function startEmbeddings(dimensions: number): Promise<Embeddings> {
  const drawn = Array.from({ length: VECTORS }, (_, i) => JSON.stringify(drawVector(i + 1, dimensions)));
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { input } = JSON.parse(Buffer.concat(pieces).toString("utf8")) as { input: string[] };
      const vectors = input.map((text) => drawn[numberOf(text) % VECTORS]);
      response.end(`{"model":"m","embeddings":[${vectors.join(",")}]}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    env: { ENGINE_EMBED_PROVIDER: "ollama", ENGINE_EMBED_MODEL_ID: "stand-in", ENGINE_EMBED_BASE_URL: url },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** FNV-1a. */
function numberOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** Of length 1, in a direction that the seed draws. */
function drawVector(seed: number, dimensions: number): number[] {
  const random = seededRandom(seed);
  const vector = Array.from({ length: dimensions }, () => random.next() - 0.5);
  const length = Math.hypot(...vector);
  return vector.map((value) => Number((value / length).toFixed(6)));
}

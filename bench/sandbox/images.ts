import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BUILT_IMAGES_FOLDER } from "../../src/sandbox/runtime/images/built-images.ts";
import { median } from "../../src/capacity/quantile.ts";
import { shown } from "../support/report.ts";
import { withServer } from "./with-server.ts";

/** 16 MiB of what does not compress, in 256 files, on top of what the host has. */
const TEMPLATE = `
base = "host"
[[commands]]
run = "mkdir /opt/data && cd /opt/data && for i in $(seq 256); do head -c 65536 /dev/urandom > $i; done"
[[commands]]
run = "echo done > /opt/mark"
`;

/** The build of an image, and starts from it: where its layers have to be fetched and unpacked, and where they are. */
export async function measureImages(rounds: number): Promise<void> {
  const took = { built: [] as number[], cold: [] as number[], warm: [] as number[] };
  await withServer({ warmPool: 0 }, async (server, client) => {
    for (let round = 0; round < rounds; round++) {
      const beganAt = performance.now();
      const image = await client.buildImage(TEMPLATE);
      took.built.push(performance.now() - beganAt);
      await rm(join(server.home, "sandboxes", "images", BUILT_IMAGES_FOLDER, image), { recursive: true, force: true });
      for (const ms of [took.cold, took.warm]) {
        const startedAt = performance.now();
        const id = await client.begin({ image });
        const text = await client.exec(id, ["cat", "/opt/mark"]);
        ms.push(performance.now() - startedAt);
        if (text !== "done\n") throw new Error(`the image has ${JSON.stringify(text)}`);
        await client.remove(id);
      }
    }
  });
  console.log(
    `an image of 16 MiB: built in ${each(took.built)}; first command after ${each(took.cold)} where it is fetched, ` +
      `${each(took.warm)} where it is`,
  );
}

function each(ms: readonly number[]): string {
  return `${shown(median(ms))} ms`;
}

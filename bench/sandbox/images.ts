import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { BUILT_IMAGES_FOLDER } from "../../src/sandbox/runtime/images/built-images.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import type { SandboxClient } from "./client.ts";
import { requireSandboxes, startSandboxServer } from "./with-server.ts";

export const benchmark = defineBenchmark({
  name: "sandbox/images",
  question:
    "What do the build of an image, and starts from it, take: where its layers have to be fetched and unpacked, and where " +
    "they are?",
  notMeasured:
    "Networks: the image is 16 MiB of what does not compress, in 256 files, on top of what this machine has. As root, on " +
    "Linux.",
  options: z.strictObject({}),
  measures: {
    built: { unit: "ms", better: "less", doc: "from asking for an image until it is built" },
    fetched: {
      unit: "ms",
      better: "less",
      doc: "until a first command has ended, where the layers have to be fetched",
    },
    present: { unit: "ms", better: "less", doc: "until a first command has ended, where the layers are" },
  },
  rounds: 5,
  open: async () => {
    requireSandboxes("sandbox/images");
    const { server, client, stop } = await startSandboxServer({ warmPool: 0 });
    const round = async () => {
      const startedMs = performance.now();
      const image = await client.buildImage(TEMPLATE);
      const built = performance.now() - startedMs;
      await rm(join(server.home, "sandboxes", "images", BUILT_IMAGES_FOLDER, image), { recursive: true, force: true });
      const fetched = await firstCommandMs(client, image);
      return { built, fetched, present: await firstCommandMs(client, image) };
    };
    return { sides: [{ name: "engine", round, processes: () => ({ server: server.pid }) }], close: stop };
  },
});

const TEMPLATE = `
base = "host"
[[commands]]
run = "mkdir /opt/data && cd /opt/data && for i in $(seq 256); do head -c 65536 /dev/urandom > $i; done"
[[commands]]
run = "echo done > /opt/mark"
`;

async function firstCommandMs(client: SandboxClient, image: string): Promise<number> {
  const startedMs = performance.now();
  const id = await client.begin({ image });
  const text = await client.exec(id, ["cat", "/opt/mark"]);
  const ms = performance.now() - startedMs;
  if (text !== "done\n") throw new Error(`the image has ${JSON.stringify(text)}`);
  await client.remove(id);
  return ms;
}

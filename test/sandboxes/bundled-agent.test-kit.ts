import { gzipSync } from "node:zlib";
import { describe } from "vitest";
import { lacking } from "../../src/core/capabilities.test-kit.ts";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { bundledAgent } from "./bundled-agent.ts";

/** A provisioning script that puts it there. */
export async function agentScript(path: string): Promise<string> {
  const packed = gzipSync(await bundledAgent()).toString("base64");
  return `base64 -d <<'END' | gzip -d > ${path}\n${packed}\nEND\n`;
}

// Machines have the programs of this computer, those of `/usr`.
const whyNoNode = lacking("/usr/bin/node");
if (whyNoNode !== undefined) process.stdout.write(`tests of agents in machines are skipped: ${whyNoNode}\n`);

/** For tests in which an agent runs in a machine. */
export const describeWithAgent = whyNoNode === undefined ? describeInCage : describe.skip;

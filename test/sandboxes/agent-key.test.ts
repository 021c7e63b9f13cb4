import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { agentBaseUrl } from "../../src/sandbox/network/gateway/environment.ts";
import { specOf } from "../../src/sandbox/contract/spec.test-kit.ts";
import { AgentWorld } from "./agent-world.test-kit.ts";

const AGENT = fileURLToPath(new URL("acp-agent.ts", import.meta.url));

let world: AgentWorld;
afterEach(() => world.close());

/** What the agent finds in that variable. */
async function codexConfig(envVar: string | undefined): Promise<unknown> {
  world = new AgentWorld({ argv: ["/bin/sh", "-c", 'env -0 > env; exec "$@"', "sh", process.execPath, AGENT] });
  const credentials = envVar === undefined ? [] : [{ credentialId: "c", envVar, hosts: ["api.example"] }];
  const spec = specOf({ agentProvider: "codex", credentials, workingDirectory: world.folder });
  await world.change({ spec });
  expect(await world.ask("say hello")).toMatchObject({ outcome: "completed" });
  const variables = readFileSync(join(world.folder, "env"), "utf8").split("\0");
  const found = variables.find((one) => one.startsWith("CODEX_CONFIG="));
  return JSON.parse(found?.slice("CODEX_CONFIG=".length) ?? "");
}

it("points an agent at the gateway where its key is a credential", async () => {
  expect(await codexConfig("OPENAI_API_KEY")).toMatchObject({
    model_provider: "engine",
    model_providers: { engine: { base_url: `${agentBaseUrl}/v1` } },
  });
});

it("leaves one as it is that has its key in another way", async () => {
  expect(await codexConfig(undefined)).toEqual({});
  await world.close();
  expect(await codexConfig("OTHER_TOKEN")).toEqual({});
});

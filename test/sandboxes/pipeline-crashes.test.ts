import { afterEach, beforeEach, expect, it } from "vitest";
import { NodeWorld } from "../../src/sandbox/node-world.test-kit.ts";
import { defaultAgentConfig } from "../../src/sandbox/contract/agents/providers.ts";
import { FakeExec } from "../../src/sandbox/runtime/fake-exec.test-kit.ts";
import { ANN } from "../../src/sandbox/control/scheduler/scheduler.test-kit.ts";
import type { SandboxSpec } from "../../src/sandbox/contract/spec.ts";
import { MemoryAgent } from "./memory-agent.test-kit.ts";

/** A node that dies in the middle of each step of the pipeline; `pipeline-kills.test.ts` does it to a real one. */

const URL = "https://git.example/a/tools.git";
const SPEC: Partial<SandboxSpec> = {
  agentProvider: "opencode",
  agentConfig: defaultAgentConfig("opencode"),
  network: { enabled: true, allowedHosts: ["git.example"], dnsServers: [] },
  volumes: [{ name: "data", mountPath: "/data", readOnly: false, sizeMb: 16 }],
  workingDirectory: "/workspace/app",
  gitRepos: [{ url: URL, pin: undefined, path: "/workspace/app", depth: undefined }],
  binaries: [{ manager: "npm", name: "typescript", version: undefined }],
  skills: [{ source: URL, ref: undefined, path: undefined, name: "tools" }],
  provisioningScripts: [{ name: "s", script: "true", user: "root", timeoutSecs: 600 }],
  preCommands: [{ name: "make", command: "make", args: [], timeoutSecs: 600 }],
  subagents: [{ name: "a", description: "d", prompt: "p", model: undefined, tools: undefined }],
};
/** Those of the commands that a machine is given. */
const COMMANDS = [
  "PrepareDisk",
  "CloneRepositories",
  "InstallBinaries",
  "InstallSkills",
  "RunScript:s",
  "RunPreCommands",
  "ConfigureAgent",
];
const STEPS = ["MountVolumes", "CreateMachine", ...COMMANDS, "StartAgent"];
const COMMAND_MS = 400;
/** After a step was begun: at once, in the middle, and when its command has ended, or the next one has begun. */
const AFTER_MS = [0, 100, 350, 450];

let world: NodeWorld;
let agents: MemoryAgent[];
/** How often each command was begun. */
let begun: Map<string, number>;
/** What the first command exits with, and so on. */
let codeOf: (number: number) => number;

beforeEach(async () => {
  world = new NodeWorld();
  agents = [];
  begun = new Map();
  codeOf = () => 0;
  world.host.execOf = (request) => {
    if (request.argv[0] === "opencode") {
      const made = new MemoryAgent(request, {});
      agents.push(made);
      return made;
    }
    begun.set(request.id, (begun.get(request.id) ?? 0) + 1);
    return new FakeExec(world.clock, { ...request, argv: [`sleep ${COMMAND_MS};exit ${codeOf(begun.size)}`] });
  };
  world.begin();
  await world.pass(1_000);
});
afterEach(() => world.close());

const stateOf = (id: string): Promise<string> => world.stateOf(id);

async function stepsOf(id: string): Promise<string[]> {
  const events = await world.plane.events(id);
  return events.flatMap(({ type, data }) =>
    type === "provisioning_step" ? [`${String(data["step"])} ${String(data["status"])}`] : [],
  );
}

/** A sandbox whose node died so long after that step was begun, and came again. */
async function crashedIn(step: string, afterMs: number): Promise<string> {
  const { id } = await world.plane.create(SPEC, ANN);
  await world.until(`${step} is begun`, async () => (await stepsOf(id)).includes(`${step} in_progress`));
  await world.pass(afterMs);
  world.crash();
  await world.pass(1_000);
  world.begin();
  return id;
}

it("has a step for each", async () => {
  const { id } = await world.plane.create(SPEC, ANN);
  await world.until("it runs", async () => (await stateOf(id)) === "running");
  expect(await stepsOf(id)).toEqual(STEPS.flatMap((step) => [`${step} in_progress`, `${step} completed`]));
});

it.each(STEPS)("goes on in %s, runs no command twice, and has one agent", async (step) => {
  for (const afterMs of AFTER_MS) {
    begun.clear();
    const before = agents.length;
    const id = await crashedIn(step, afterMs);
    await world.until("it runs", async () => (await stateOf(id)) === "running");
    expect((await stepsOf(id)).at(-1)).toBe("StartAgent completed");
    expect([afterMs, ...begun.values()]).toEqual([afterMs, ...Array.from(begun, () => 1)]);
    expect(begun.size).toBeGreaterThanOrEqual(COMMANDS.length);
    expect(agents.slice(before).filter(({ isKilled }) => !isKilled)).toHaveLength(1);
    await world.plane.act(id, "delete", ANN);
    await world.until("it is gone", async () => (await stateOf(id)) === "gone");
    expect(world.host.left).toEqual([]);
  }
});

it.each([
  ["PrepareDisk", 1],
  ["CloneRepositories", 3],
  ["InstallBinaries", 4],
  ["InstallSkills", 5],
  ["InstallSkills", 6],
  ["RunScript:s", 7],
  ["RunPreCommands", 8],
  ["ConfigureAgent", 9],
] as const)("fails in %s when its command does meanwhile, the one of number %i", async (step, failing) => {
  codeOf = (number) => (number === failing ? 7 : 0);
  const { id } = await world.plane.create(SPEC, ANN);
  await world.until("it is begun", () => begun.size === failing);
  await world.pass(COMMAND_MS / 2);
  world.crash();
  await world.pass(1_000);
  world.begin();
  await world.until("it has failed", async () => (await stateOf(id)) === "failed");
  const failed = (await world.plane.events(id)).find(({ type }) => type === "provisioning_failed");
  expect(failed?.data).toMatchObject({ step, error: expect.stringContaining("it ended with exit code 7") });
  expect([...begun.values()]).toEqual(Array.from({ length: failing }, () => 1));
});

import { afterEach, beforeEach, expect, it } from "vitest";
import { ANONYMOUS } from "../auth/caller.ts";
import { FAKE_GRACE_MS } from "./runtime/fake-runtime.test-kit.ts";
import { RuntimeError } from "./runtime/runtime.ts";
import { LEASE_MS, ROOT } from "./control/scheduler/scheduler.test-kit.ts";
import type { ProvisioningScript, SandboxSpec } from "./contract/spec.ts";
import type { SandboxState } from "./contract/states.ts";
import { GRACE_MS, NodeWorld } from "./node-world.test-kit.ts";

let world: NodeWorld;

beforeEach(async () => {
  world = new NodeWorld();
  world.begin();
  await world.pass(1_000);
});
afterEach(() => world.close());

const stateOf = (id: string): Promise<string> => world.stateOf(id);

async function create(spec: Partial<SandboxSpec> = {}): Promise<string> {
  return (await world.plane.create(spec)).id;
}

async function reaches(id: string, state: SandboxState | "gone", mostMs?: number): Promise<void> {
  await world.until(`${id} is ${state}`, async () => (await stateOf(id)) === state, mostMs);
}

async function running(spec: Partial<SandboxSpec> = {}): Promise<string> {
  const id = await create(spec);
  await reaches(id, "running");
  return id;
}

async function does(id: string, action: Parameters<typeof world.plane.act>[1], state: SandboxState | "gone") {
  await world.plane.act(id, action, ROOT);
  await reaches(id, state);
}

async function eventsOf(id: string): Promise<string[]> {
  return (await world.plane.events(id)).map(({ type, data }) => {
    const text = (name: string) => String(data[name]);
    if (type === "provisioning_step") return `${text("step")} ${text("status")}`;
    if (type === "sandbox_state_changed") return `${text("from")} > ${text("to")}`;
    if (type === "log_line") return `${text("stream")}: ${text("line")}`;
    return type;
  });
}

function script(name: string, text: string): ProvisioningScript {
  return { name, script: text, user: "root", timeoutSecs: 600 };
}

it("makes a sandbox, pauses, resumes, stops, starts and deletes it", async () => {
  const id = await running();
  expect(world.host.machines.get(id)?.spec).toMatchObject({ keepsDisk: false, hostname: `sandbox-${id.slice(-12)}` });
  await does(id, "pause", "paused");
  expect(world.host.machines.get(id)?.isPaused).toBe(true);
  await does(id, "resume", "running");
  expect(world.host.machines.get(id)?.isPaused).toBe(false);
  await does(id, "stop", "stopped");
  expect(world.host.left).toEqual([]);
  await does(id, "start", "running");
  await does(id, "delete", "gone");
  expect(world.host.left).toEqual([]);
  expect(world.files.size).toBe(0);
  expect(world.node?.sandboxes).toBe(0);
});

it("tells of each step, in order, with the output of scripts", async () => {
  const volumes = [{ name: "v", mountPath: "/v", readOnly: false, sizeMb: 10 }];
  const id = await running({
    volumes,
    provisioningScripts: [script("a", "echo one; echo two"), script("b", "exit 0")],
  });
  expect(await eventsOf(id)).toEqual([
    "pending > creating",
    "MountVolumes in_progress",
    "MountVolumes completed",
    "CreateMachine in_progress",
    "CreateMachine completed",
    "RunScript:a in_progress",
    "stdout: one",
    "stdout: two",
    "RunScript:a completed",
    "RunScript:b in_progress",
    "RunScript:b completed",
    "provisioning_complete",
    "creating > running",
  ]);
});

it("fails a sandbox whose script fails, says why, and leaves nothing", async () => {
  const id = await create({ provisioningScripts: [script("setup", "echo no such package; exit 3")] });
  await reaches(id, "failed");
  await world.pass(1_000);
  const reason = "it ended with exit code 3; its last line: no such package";
  expect((await world.plane.sandboxes.get(id, ROOT)).reason).toBe(`RunScript:setup: ${reason}`);
  const failed = (await world.plane.events(id)).find(({ type }) => type === "provisioning_failed");
  expect(failed?.data).toEqual({ error: reason, step: "RunScript:setup" });
  expect([world.host.left, world.files.size, world.node?.sandboxes]).toEqual([[], 0, 0]);
  await does(id, "delete", "gone");
});

it("fails a sandbox whose variables cannot be opened: it would be another one", async () => {
  const id = await create();
  const [row] = await world.plane.records.rows("SELECT spec FROM sandboxes WHERE id = ?", [id]);
  const sealedEnv = { keyId: "a-key", sealedKey: "", sealedValue: "" };
  const spec = JSON.stringify({ ...(JSON.parse(String(row?.["spec"])) as object), sealedEnv });
  const sql = "UPDATE sandboxes SET spec = ? WHERE id = ?";
  await world.plane.records.transact([{ sql, values: [spec, id] }]);
  await reaches(id, "failed");
  const why = "its environment variables cannot be opened: they are sealed with the key a-key, and none is configured";
  expect((await world.plane.sandboxes.get(id, ROOT)).reason).toBe(`OpenVariables: ${why}`);
});

it("fails a sandbox that the runtime cannot make", async () => {
  world.host.before = (verb) => {
    if (verb === "create") throw new RuntimeError("no_space", "the disk is full");
  };
  const id = await create();
  await reaches(id, "failed");
  expect((await world.plane.sandboxes.get(id, ROOT)).reason).toBe("CreateMachine: the disk is full");
});

it("deletes a sandbox in the middle of its scripts", async () => {
  const id = await create({ provisioningScripts: [script("long", "sleep 500000")] });
  await reaches(id, "creating");
  await world.pass(2_000);
  await does(id, "delete", "gone");
  expect(world.host.left).toEqual([]);
});

it("keeps the disk of a persistent sandbox, and does not run its scripts again", async () => {
  const id = await running({ persistence: "persistent", provisioningScripts: [script("a", "echo once")] });
  world.host.disks.get(id)?.files.set("a", "kept");
  await does(id, "stop", "stopped");
  expect(world.host.machines.size).toBe(0);
  await does(id, "start", "running");
  expect(world.host.disks.get(id)?.files.get("a")).toBe("kept");
  expect((await eventsOf(id)).filter((event) => event === "stdout: once")).toHaveLength(1);
  expect(await eventsOf(id)).toContain("StartMachine completed");
  await does(id, "delete", "gone");
  expect(world.host.left).toEqual([]);
});

it("stops a sandbox whose time has passed, also while the node was away", async () => {
  const id = await running({ timeoutSecs: 60, persistence: "persistent" });
  await world.pass(61_000);
  expect(await stateOf(id)).toBe("stopped");
  expect(await eventsOf(id)).toContain("running > stopping");
  await does(id, "start", "running");
  await world.pass(50_000);
  world.crash();
  await world.pass(15_000);
  world.begin();
  await reaches(id, "stopped");
  expect((await world.plane.events(id)).at(-2)?.data).toMatchObject({
    to: "stopping",
    reason: "timeout_secs have passed",
  });
});

it("fails an ephemeral sandbox whose machine dies, and stops a persistent one", async () => {
  const [a, b] = [await running(), await running({ persistence: "persistent" })];
  for (const id of [a, b]) world.host.machines.get(id)?.end({ cause: "died", reason: "init was killed" });
  await reaches(a, "failed");
  await reaches(b, "stopped");
  expect((await world.plane.sandboxes.get(a, ROOT)).reason).toBe("its machine ended: init was killed");
  await does(b, "start", "running");
  await world.until("the dead one is gone", () => world.host.left.join() === b);
});

it("has a persistent sandbox back whose machine did not outlive its absence; an ephemeral one has failed", async () => {
  // A process that was there all the time did not come to renew anything.
  for (const hasCrashed of [true, false]) {
    const [a, b] = [await running(), await running({ persistence: "persistent" })];
    const disk = world.host.disks.get(b);
    disk?.files.set("a", "kept");
    if (hasCrashed) world.crash();
    for (const id of [a, b]) world.host.machines.get(id)?.end({ cause: "lease" });
    if (hasCrashed) world.begin();
    await reaches(a, "failed");
    await world.until("it is another machine", () => world.host.machines.get(b)?.isEnded === false);
    await reaches(b, "running");
    expect(world.host.disks.get(b)?.files.get("a")).toBe("kept");
    expect((await world.plane.sandboxes.get(a, ROOT)).reason).toMatch(/^its node was lost: its (node|machine) /);
    expect(await eventsOf(b)).toContain("running > pending");
    for (const id of [a, b]) await does(id, "delete", "gone");
    expect(world.host.left).toEqual([]);
  }
});

it("goes on with its sandboxes after a crash, also in the middle of a script", async () => {
  const up = await running();
  const making = await create({ provisioningScripts: [script("long", "echo begin; sleep 20000; echo end")] });
  await reaches(making, "creating");
  await world.pass(3_000);
  const machines = [...world.host.machines.values()];
  world.crash();
  await world.pass(10_000);
  world.begin();
  await reaches(making, "running");
  expect([...world.host.machines.values()]).toEqual(machines);
  expect(machines.flatMap(({ execs }) => [...execs])).toHaveLength(1);
  await world.pass(2 * LEASE_MS);
  expect([await stateOf(up), await stateOf(making)]).toEqual(["running", "running"]);
  expect(machines.every(({ isPaused, isEnded }) => !isPaused && !isEnded)).toBe(true);
});

it("leaves machines and jobs alone when it is told to end", async () => {
  const id = await running();
  await world.end();
  expect(world.host.machines.get(id)?.isPaused).toBe(false);
  world.begin();
  await world.pass(LEASE_MS * 2);
  expect(await stateOf(id)).toBe("running");
});

it("does what was wished while it was away", async () => {
  const [a, b] = [await running(), await running()];
  world.crash();
  await world.plane.act(a, "pause", ROOT);
  await world.plane.act(b, "delete", ROOT);
  world.begin();
  await reaches(a, "paused");
  await reaches(b, "gone");
});

it("ends what it may have no longer: ephemeral machines with everything, persistent ones but for their disk", async () => {
  const [a, b] = [await running(), await running({ persistence: "persistent" })];
  world.host.disks.get(b)?.files.set("f", "kept");
  const machines = [a, b].map((id) => world.host.machines.get(id));
  world.way = () => "closed";
  await world.until(
    "the node notices",
    () => machines.every((machine) => machine?.isPaused === true),
    LEASE_MS + 1_000,
  );
  await world.pass(Math.max(GRACE_MS, FAKE_GRACE_MS) + 1_000);
  expect(machines.every((machine) => machine?.isEnded)).toBe(true);
  expect(world.host.left).toEqual([b]);
  expect(await stateOf(a)).toBe("failed");
  world.way = () => "open";
  await reaches(b, "running");
  expect(world.host.disks.get(b)?.files.get("f")).toBe("kept");
});

/** The job is taken from the node long before its lease would have ended. */
async function takeAway(id: string): Promise<void> {
  const { jobId = "" } = await world.plane.sandboxes.get(id, ROOT);
  await world.plane.records.write({ sql: "UPDATE jobs SET lease_expires_at_ms = 0 WHERE id = ?", values: [jobId] });
  await world.plane.fabric.sweep();
}

it("freezes at once, and ends after a grace, what it hears to have lost", async () => {
  const id = await running();
  await world.pass(9_000);
  const machine = world.host.machines.get(id);
  const frozenAtMs: number[] = [];
  world.host.before = (verb) => void (verb === "pause" && frozenAtMs.push(world.clock.nowMs()));
  await takeAway(id);
  await world.until("it ends", () => machine?.isEnded === true);
  expect(frozenAtMs).toHaveLength(1);
  expect(world.clock.nowMs() - (frozenAtMs[0] ?? 0)).toBeGreaterThanOrEqual(GRACE_MS);
  expect(world.clock.nowMs() - (frozenAtMs[0] ?? 0)).toBeLessThanOrEqual(GRACE_MS + 500);
  await world.until("nothing is left", () => world.host.left.length === 0);
});

it("begins anew with a sandbox that it lost and gets again, when the end of the old machine is over", async () => {
  const id = await running({ persistence: "persistent" });
  const machine = world.host.machines.get(id);
  await takeAway(id);
  await world.until("it begins anew", () => ![undefined, machine].includes(world.host.machines.get(id)));
  await reaches(id, "running");
  await world.pass(2 * GRACE_MS);
  const fresh = world.host.machines.get(id);
  world.crash();
  world.begin();
  await world.pass(LEASE_MS);
  expect([await stateOf(id), world.host.machines.get(id) === fresh, fresh?.isPaused]).toEqual(["running", true, false]);
});

it("does not take the machine of a hold that it lost for that of the next one", async () => {
  const id = await running({ persistence: "persistent" });
  await world.pass(9_900);
  const machine = world.host.machines.get(id);
  let isStuck = true;
  world.host.before = (verb) => {
    if (verb === "stop" && isStuck) throw new Error("it cannot be stopped, as planted");
  };
  await takeAway(id);
  // The node gives up to end it before the supervisor does.
  await world.pass(18_000);
  expect(machine?.isEnded).toBe(false);
  isStuck = false;
  await world.until("it begins anew", () => ![undefined, machine].includes(world.host.machines.get(id)));
  await reaches(id, "running");
  expect(machine?.isEnded).toBe(true);
});

it("makes a machine anew whose making was cut short by a crash", async () => {
  world.host.before = async (verb) => {
    if (verb === "start") await new Promise<void>((resolve) => world.clock.after(5_000, resolve));
  };
  const id = await create();
  await reaches(id, "creating");
  await world.until("half of it is there", () => world.host.disks.has(id));
  world.crash();
  world.begin();
  await reaches(id, "running");
});

it("loses no line that is written right after a crash", async () => {
  const id = await running({
    provisioningScripts: [script("a", "echo one; sleep 500; echo two; sleep 500; echo three")],
  });
  world.crash();
  world.begin();
  await world.until("it is taken up", () => world.node?.keeperOf(id)?.machine !== undefined);
  await world.pass(500);
  for (const tell of world.host.machines.get(id)?.listeners ?? []) tell({ stream: "stderr", line: "after" });
  await world.pass(1_000);
  expect((await eventsOf(id)).filter((event) => event === "stderr: after")).toHaveLength(1);
});

it("ends at its next start what was taken from it meanwhile", async () => {
  const [a, b] = [await running(), await running({ persistence: "persistent" })];
  world.crash();
  await world.pass(LEASE_MS + 10_000);
  expect(world.host.machines.size).toBe(0);
  expect([await stateOf(a), await stateOf(b)]).toEqual(["failed", "pending"]);
  world.begin();
  await reaches(b, "running");
  expect(world.host.left).toEqual([b]);
});

it("removes machines that no job explains, and disks whose sandbox was deleted meanwhile", async () => {
  const id = await running({ persistence: "persistent" });
  world.crash();
  await world.pass(LEASE_MS + 10_000);
  await world.plane.act(id, "delete", ROOT);
  await reaches(id, "gone");
  world.host.disks.set("01900000-0000-7000-8000-0000000000ff", { files: new Map() });
  world.begin();
  await world.until("nothing is left", () => world.host.left.length === 0 && world.files.size === 0);
});

it("writes what happens once, though answers are lost", async () => {
  let asked = 0;
  world.way = () => (asked++ % 3 === 0 ? "no answers" : "open");
  const text = Array.from({ length: 50 }, (_, i) => `echo line ${i}; sleep 70`).join(";");
  const id = await running({ provisioningScripts: [script("a", text)] });
  const lines = (await eventsOf(id)).filter((event) => event.startsWith("stdout"));
  expect(lines).toEqual(Array.from({ length: 50 }, (_, i) => `stdout: line ${i}`));
});

it("drops lines that come faster than they can be written, and says so", async () => {
  const id = await running();
  world.way = () => "closed";
  const machine = world.host.machines.get(id);
  for (let i = 0; i < 10_000; i++)
    for (const tell of machine?.listeners ?? []) tell({ stream: "stdout", line: `${i}` });
  await world.pass(5_000);
  world.way = () => "open";
  await world.pass(5_000);
  const events = await world.plane.events(id);
  const lines = events.filter(({ type }) => type === "log_line");
  expect(lines.length).toBeGreaterThan(3_000);
  expect(lines.length).toBeLessThan(6_000);
  const lost = events.find(({ type }) => type === "error");
  expect(lost?.data).toMatchObject({
    code: "lines_lost",
    message: expect.stringMatching(`^${10_000 - lines.length} `),
  });
});

it("tells of lines that its machine could not keep", async () => {
  const id = await running();
  for (const tell of world.host.machines.get(id)?.lossListeners ?? []) tell(7);
  await world.pass(5_000);
  const lost = (await world.plane.events(id)).find(({ type }) => type === "error");
  expect(lost?.data).toMatchObject({ code: "lines_lost", lines: 7 });
});

it("keeps no more of a flood of long lines than of short ones, and none that is too large to be written", async () => {
  const id = await running();
  const machine = world.host.machines.get(id);
  const say = (line: string) => {
    for (const tell of machine?.listeners ?? []) tell({ stream: "stdout", line });
  };
  // Six times as many bytes of JSON.
  const hostile = "\0".repeat(16_384);
  say(hostile);
  await world.pass(5_000);
  const lines = async () =>
    (await world.plane.events(id)).filter(({ type }) => type === "log_line").map(({ data }) => String(data["line"]));
  expect((await lines()).join("")).toBe(hostile);
  world.way = () => "closed";
  for (let i = 0; i < 3_000; i++) say(`${i} ${"x".repeat(16_000)}`);
  await world.pass(5_000);
  world.way = () => "open";
  await world.pass(5_000);
  const kept = (await lines()).length - 2;
  // A batch was on its way.
  expect(kept).toBeGreaterThan(60);
  expect(kept).toBeLessThan(300);
  const lost = (await world.plane.events(id)).find(({ type }) => type === "error");
  expect(lost?.data).toMatchObject({ code: "lines_lost", lines: 3_000 - kept });
});

it("says what an idle sandbox uses once a minute", async () => {
  const id = await running();
  await world.pass(180_000);
  const stats = (await world.plane.events(id)).filter(({ type }) => type === "stats");
  expect(stats.length).toBeGreaterThanOrEqual(3);
  expect(stats.length).toBeLessThanOrEqual(5);
  expect((await world.plane.sandboxes.get(id, ROOT)).stats).toMatchObject({
    memory_used_mb: 1,
    memory_limit_mb: 1_024,
  });
});

it("ends a sandbox whose job an operator cancels", async () => {
  const id = await running({ persistence: "persistent" });
  const { jobId = "" } = await world.plane.sandboxes.get(id, ROOT);
  await world.plane.fabric.cancel(jobId);
  await reaches(id, "failed");
  await world.until("nothing is left", () => world.host.left.length === 0);
  expect((await world.plane.fabric.find(jobId, ANONYMOUS))?.status).toBe("cancelled");
});

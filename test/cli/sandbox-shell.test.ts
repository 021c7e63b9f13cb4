import { afterAll, beforeAll, expect, test } from "vitest";
import { startLiveWorld, type LiveServer, type LiveWorld } from "../sandbox-routes/live.test-kit.ts";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { Keyboard, SeenOutput } from "../../src/cli/sandbox.test-kit.ts";

let world: LiveWorld;
let server: LiveServer;
let id: string;
beforeAll(async () => {
  world = await startLiveWorld();
  server = await world.startServer();
  id = await world.newSandbox();
});
afterAll(() => world.close());

function shell({ by = "t", of = id, screen = {}, keyboard = new Keyboard() } = {}) {
  const stdout = new SeenOutput({ isTTY: true, ...screen });
  const ended = runHere(["sandbox", "shell", of, "--server", server.url], {
    env: { ENGINE_TOKEN: by },
    input: keyboard,
    stdout,
  });
  return { keyboard, stdout, ended };
}
const newest = () => [...world.machine.execs.values()].at(-1);

test("a terminal there is as this one: bytes, size, end; which is left as it was", async () => {
  const { keyboard, stdout, ended } = shell({ screen: { columns: 100, rows: 30 } });
  await expect.poll(() => keyboard.modes).toEqual([true]);
  keyboard.write(String.raw`printf 'gr\303\274\303\237 \377\n'` + "\n");
  const shown = Buffer.concat([Buffer.from("grüß "), Buffer.from([255, 10])]);
  // A login shell may have said something before.
  await expect.poll(() => stdout.bytes().subarray(-shown.length).equals(shown)).toBe(true);
  Object.assign(stdout, { columns: 5_000, rows: 40 });
  stdout.emit("resize");
  await expect
    .poll(() => newest()?.sizes)
    .toEqual([
      { columns: 100, rows: 30 },
      { columns: 1_000, rows: 40 },
    ]);
  keyboard.write("exit 7\n");
  expect(await ended).toMatchObject({ code: 7, stderr: "" });
  expect(keyboard.modes).toEqual([true, false]);
  expect([keyboard.listenerCount("data"), stdout.listenerCount("resize")]).toEqual([0, 0]);
});

test("a signal that ends the shell is told, and much output comes whole", async () => {
  const { keyboard, stdout, ended } = shell();
  keyboard.write("seq 100000; kill -9 $$\n");
  expect((await ended).code).toBe(137);
  expect(stdout.text().endsWith(Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join(""))).toBe(true);
});

test("says why there is none, before and after the upgrade", async () => {
  const refused = async (options: Parameters<typeof shell>[0]) => {
    const { keyboard, ended } = shell(options);
    const { code, stderr } = await ended;
    return [code, stderr, keyboard.modes.at(-1) ?? false];
  };
  const paused = await world.newSandbox({ state: "paused" });
  expect(await refused({ of: paused })).toEqual([1, "error: the sandbox is paused: this needs running\n", false]);
  expect(await refused({ by: "other" })).toEqual([1, `error: there is no sandbox ${id}\n`, false]);
  expect(await refused({ by: "nobody" })).toEqual([4, expect.stringContaining("refuses this token"), false]);
  expect(await refused({ by: "reader" })).toEqual([4, expect.stringContaining("refuses this token"), false]);
  world.nodes.isAway = true;
  expect(await refused({})).toEqual([1, "error: node n is not connected\n", false]);
  world.nodes.isAway = false;
});

test("a server that breaks off is told", async () => {
  const own = await world.startServer();
  const keyboard = new Keyboard();
  const ended = runHere(["sandbox", "shell", id, "--server", own.url], { env: { ENGINE_TOKEN: "t" }, input: keyboard });
  await expect.poll(() => keyboard.modes).toEqual([true]);
  await own.close();
  const { code, stderr } = await ended;
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^error: /)]);
  expect(keyboard.modes).toEqual([true, false]);
});

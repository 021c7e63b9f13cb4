import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket, type ClientOptions } from "ws";
import { startLiveWorld, type LiveServer, type LiveWorld } from "./live.test-kit.ts";

let world: LiveWorld;
let server: LiveServer;
let id: string;
beforeAll(async () => {
  world = await startLiveWorld();
  server = await world.startServer();
  id = await world.newSandbox();
});
afterAll(() => world.close());

type Terminal = { socket: WebSocket; shown: () => string; texts: unknown[]; closed: Promise<number> };

async function openShell(query = ""): Promise<Terminal> {
  const url = `${server.url.replace("http", "ws")}/api/v1/sandboxes/${id}/shell${query}`;
  const options: ClientOptions = { headers: { Authorization: "Bearer t" } };
  const socket = new WebSocket(url, options);
  let shown = "";
  const texts: unknown[] = [];
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) shown += data.toString();
    else texts.push(JSON.parse(data.toString()));
  });
  const closed = new Promise<number>((resolve) => socket.on("close", resolve));
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  return { socket, shown: () => shown, texts, closed };
}
const newest = () => [...world.machine.execs.values()].at(-1);

it("a terminal takes what is typed, shows what comes, changes its size and tells its end", async () => {
  const { socket, shown, texts, closed } = await openShell("?columns=100&rows=30&cwd=/usr");
  socket.send(Buffer.from("pwd; echo grüß\n"));
  await expect.poll(shown).toContain("/usr\ngrüß\n");
  socket.send(JSON.stringify({ resize: { columns: 120, rows: 40 } }));
  await expect
    .poll(() => newest()?.sizes)
    .toEqual([
      { columns: 100, rows: 30 },
      { columns: 120, rows: 40 },
    ]);
  socket.send(Buffer.from("exit 7\n"));
  expect(await closed).toBe(1_000);
  expect(texts).toEqual([{ exit: { exit_code: 7, signal: null, timed_out: false } }]);
  const [entry] = await world.audit.list({ limit: 1 });
  expect(entry).toMatchObject({ action: "sandbox.shell", target: id, actor: "t" });
});

it("a client that leaves hangs up", async () => {
  for (const leave of ["close", "terminate"] as const) {
    const { socket, shown } = await openShell();
    socket.send(
      Buffer.from("trap 'echo hung >&2; exit 1' HUP; echo ready; for n in $(seq 1200); do sleep 0.05; done\n"),
    );
    await expect.poll(shown).toContain("ready");
    const exec = newest();
    socket[leave]();
    await expect.poll(() => exec?.hasEnded).toBe(true);
    await expect.poll(() => exec?.readers).toBe(0);
  }
});

it("what is no control message ends it, and what cannot be opened is told", async () => {
  const refused = await openShell();
  refused.socket.send("resize please");
  expect(await refused.closed).toBe(1_008);
  world.nodes.isAway = true;
  const lost = await openShell();
  expect(await lost.closed).toBe(1_011);
  expect(lost.texts).toMatchObject([{ error: { code: "unavailable" } }]);
  world.nodes.isAway = false;
});

it("is refused before it begins where that can be known", async () => {
  const ask = async (path: string, by: string) => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/v1/sandboxes/${path}`, {
      headers: { Authorization: `Bearer ${by}` },
    });
    return await new Promise((resolve) => {
      socket.on("error", () => undefined);
      socket.on("unexpected-response", (_, response) => resolve(response.statusCode));
    });
  };
  const paused = await world.newSandbox({ state: "paused" });
  expect(await ask(`${id}/shell`, "reader")).toBe(403);
  expect(await ask(`${id}/shell`, "other")).toBe(404);
  expect(await ask(`${id}/shell?rows=0`, "t")).toBe(400);
  expect(await ask(`${paused}/shell`, "t")).toBe(409);
  const plain = await fetch(`${server.url}/api/v1/sandboxes/${id}/shell`, { headers: { Authorization: "Bearer t" } });
  expect(plain.status).toBe(426);
});

import { createRequire } from "node:module";
import { connect, createServer, type Socket } from "node:net";
import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLog } from "../../../core/log.ts";
import type { HttpResponse } from "../../../io/http/http.ts";
import { SocketServer } from "./socket-server.ts";

let folder = "";
let server: SocketServer;
let answer: (response: HttpResponse) => void;
let asked = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-socket-"));
  asked = 0;
  const post = () => {
    asked += 1;
    return new Promise<HttpResponse>((resolve) => (answer = resolve));
  };
  const log = createLog("silent");
  server = new SocketServer({ path: join(folder, "mcp.sock"), mcp: { post }, newId: () => "id", log });
  await server.listen();
});
afterEach(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

async function connected(): Promise<Socket> {
  const socket = connect(join(folder, "mcp.sock"));
  await once(socket, "connect");
  return socket;
}

const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
const request = [
  "POST /mcp/v1 HTTP/1.1",
  "Host: engine",
  "Content-Type: application/json",
  `Content-Length: ${body.length}`,
  "",
  body,
].join("\r\n");

test("it drains when what was asked is answered, whoever keeps a connection", async () => {
  const [silent, halfSaid, asking] = [await connected(), await connected(), await connected()];
  const ends = [silent, halfSaid, asking].map((socket) => once(socket, "close"));
  for (const socket of [silent, halfSaid]) socket.resume();
  halfSaid.write("POST /mcp/v1 HTTP/1.1\r\n");
  let text = "";
  asking.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  asking.write(request);
  await expect.poll(() => asked).toBe(1);
  let isDrained = false;
  const drained = server.drain().then(() => (isDrained = true));
  await Promise.all(ends.slice(0, 2));
  expect([isDrained, text]).toEqual([false, ""]);
  answer({ status: 200, headers: {}, body: "the answer" });
  await Promise.all([drained, ...ends]);
  expect(text).toMatch(/^HTTP\/1\.1 200 OK[^]*the answer/u);
});

test("after it has taken the place of one that was killed, modules behind a symbolic link are found at their real paths", async () => {
  const real = await realpath(folder);
  await mkdir(join(real, "modules"));
  for (const name of ["first", "later"]) await writeFile(join(real, "modules", `${name}.cjs`), "");
  await symlink(join(real, "modules"), join(real, "link"));
  const { resolve } = createRequire(join(real, "main.cjs"));
  expect(resolve("./link/first.cjs")).toBe(join(real, "modules/first.cjs"));
  // What a killed server leaves: `close` would remove it.
  const killed = createServer().listen(join(real, "killed.sock"));
  await once(killed, "listening");
  await rename(join(real, "killed.sock"), join(real, "left.sock"));
  killed.close();
  const log = createLog("silent");
  const next = new SocketServer({ path: join(real, "left.sock"), mcp: { post: vi.fn() }, newId: () => "id", log });
  await next.listen();
  expect(resolve("./link/later.cjs")).toBe(join(real, "modules/later.cjs"));
  next.close();
});

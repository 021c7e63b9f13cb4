import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startLiveWorld, type LiveServer, type LiveWorld } from "./live.test-kit.ts";

async function repeat(request: IncomingMessage, response: ServerResponse): Promise<void> {
  // Its head comes first, its body when all was read.
  response.flushHeaders();
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  response.end(Buffer.concat(pieces));
}

let world: LiveWorld;
let server: LiveServer;
let program: Server;
let port: number;
let id: string;
let seen: IncomingMessage[];
beforeAll(async () => {
  world = await startLiveWorld();
  server = await world.startServer();
  seen = [];
  program = createServer((request, response) => {
    seen.push(request);
    const { pathname } = new URL(request.url ?? "", "http://x");
    if (pathname === "/echo") return void repeat(request, response);
    if (pathname === "/pipe") return void request.pipe(response);
    if (pathname === "/moved")
      return void response.writeHead(302, { Location: `http://localhost:${port}/there` }).end();
    if (pathname === "/broken") return void request.socket.destroy();
    if (pathname === "/slow") return void response.write("first\n");
    if (pathname === "/early") return void response.writeHead(413, { Connection: "close" }).end("enough");
    response.setHeader("Set-Cookie", ["a=1", "b=2"]);
    response.setHeader("Content-Security-Policy", "default-src *");
    response.setHeader("Access-Control-Allow-Origin", "*");
    response.setHeader("X-Frame-Options", "ALLOWALL");
    response.setHeader("WWW-Authenticate", "Basic");
    response.setHeader("Connection", "X-Hop");
    response.setHeader("X-Hop", "1");
    response.setHeader("X-Own", "kept");
    response.writeHead(pathname === "/teapot" ? 418 : 200, { "Content-Type": "text/html" });
    return void response.end(`<p>${request.method} ${request.url}</p>`);
  });
  await new Promise<void>((resolve) => program.listen(0, "127.0.0.1", resolve));
  port = (program.address() as AddressInfo).port;
  id = await world.newSandbox({ ports: [{ port }] });
});
afterAll(async () => {
  program.closeAllConnections();
  program.close();
  await world.close();
});

const send = (rest: string, init: RequestInit = {}, { by = "t", to = port, sandbox = id } = {}) =>
  fetch(`${server.url}/api/v1/sandboxes/${sandbox}/ports/${to}${rest}`, {
    redirect: "manual",
    ...init,
    headers: { Authorization: `Bearer ${by}`, ...(init.headers as Record<string, string>) },
  });

it("a program in a sandbox is asked as the client asks, but for what shows who that is", async () => {
  const headers = {
    Cookie: "c=1",
    Origin: "http://evil",
    Referer: "http://evil/",
    "X-Own": "1",
    "X-Forwarded-For": "1.2.3.4",
  };
  const answer = await send("/a%2Fb/c?d=%20e", { method: "DELETE", headers });
  expect(await answer.text()).toBe("<p>DELETE /a%2Fb/c?d=%20e</p>");
  const asked = seen.at(-1)?.headers ?? {};
  expect(asked).toMatchObject({
    host: `localhost:${port}`,
    "x-own": "1",
    "x-forwarded-prefix": `/api/v1/sandboxes/${id}/ports/${port}`,
    "x-forwarded-proto": "http",
  });
  for (const name of ["authorization", "cookie", "origin", "referer", "x-forwarded-for"])
    expect(asked).not.toHaveProperty(name);
  expect(await (await send("/")).text()).toBe("<p>GET /</p>");
  expect((await send("/teapot")).status).toBe(418);
});

it("what it answers is nothing to this origin", async () => {
  const { headers } = await send("/page");
  expect(headers.get("content-security-policy")).toBe("sandbox");
  expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("content-type")).toBe("text/html");
  expect(headers.get("x-own")).toBe("kept");
  for (const name of ["set-cookie", "www-authenticate", "x-hop", "access-control-allow-origin"])
    expect(headers.has(name)).toBe(false);
  expect((await send("/moved")).headers.get("location")).toBe(`/api/v1/sandboxes/${id}/ports/${port}/there`);
});

it("bodies flow both ways, large ones and those of no known length", async () => {
  const bytes = Buffer.alloc(8 * 1024 * 1024, "0123456789abcdef");
  for (const body of [bytes, new Blob([bytes]).stream()]) {
    const answer = await send("/echo", { method: "POST", body, duplex: "half" });
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
  }
  // One that reads no more than is read of it: all comes back, or the answer breaks; it neither hangs nor ends early.
  const flood = Buffer.alloc(8 * bytes.length, "0123456789abcdef");
  const piped = send("/pipe", { method: "POST", body: flood }).then((answer) => answer.arrayBuffer());
  expect([flood.length, "broken"]).toContain(
    await piped.then(
      (got) => got.byteLength,
      () => "broken",
    ),
  );
  const slow = await send("/slow");
  const reader = slow.body?.getReader();
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("first\n");
  const { socket } = seen.at(-1) ?? {};
  await reader?.cancel();
  await expect.poll(() => socket?.destroyed).toBe(true);
  expect(await (await send("/early", { method: "PUT", body: "x".repeat(1_000) })).text()).toBe("enough");
});

it("is refused where there is nothing to ask", async () => {
  const codeOf = async (response: Promise<Response>) => {
    const answer = await response;
    const { error } = (await answer.json()) as { error: { code: string } };
    return `${answer.status} ${error.code}`;
  };
  const closed = await world.newSandbox({ ports: [{ port: 1 }] });
  expect(await codeOf(send("/", {}, { to: 1 }))).toBe("404 not_found");
  expect(await codeOf(send("/", {}, { to: 1, sandbox: closed }))).toBe("503 unavailable");
  expect(await codeOf(send("/broken"))).toBe("503 unavailable");
  expect(await codeOf(send("/", {}, { by: "other" }))).toBe("404 sandbox_not_found");
  expect(await codeOf(send("/", { method: "POST" }, { by: "reader" }))).toBe("403 forbidden");
  const paused = await world.newSandbox({ state: "paused", ports: [{ port }] });
  expect(await codeOf(send("/", {}, { sandbox: paused }))).toBe("409 sandbox_invalid_state");
});

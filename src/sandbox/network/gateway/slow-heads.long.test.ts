import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { openWorld, PAT, secureTunnel, sendRaw, use, type World } from "./gateway.test-kit.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterEach(() => world.closeAll());
afterAll(() => world.close());

it("heads that take too long are ended, in TLS as well", async () => {
  const sandbox = await world.proxy({ credentials: [use("cred-1", ["api.test"])], values: { "cred-1": PAT } });
  const plain = connect(sandbox.port, "127.0.0.1");
  const secured = await secureTunnel(sandbox.port, "api.test:443", world.authority.certificate);
  const texts = await Promise.all([
    sendRaw(plain, "GET /_engine/agent/ HTTP/1.1\r\nX-Slow: "),
    sendRaw(secured, "GET / HTTP/1.1\r\nX-Slow: "),
  ]);
  for (const text of texts) expect(text).toMatch(/^HTTP\/1\.1 400 /);
  await expect.poll(() => sandbox.proxy.connections).toBe(0);
});

import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { ask } from "../edge/edge.test-kit.ts";
import { certificateFolder, makeCertificate, trustCertificate } from "../../src/io/http/tls.test-kit.ts";
import type { Engine } from "../support/engine.ts";
import { start, startEdge, stopAll } from "./edge.test-kit.ts";

/** Pages and clients behind an edge whose peers are real servers. */
afterEach(stopAll);

const APP = "https://app.example";

async function call(engine: Engine, line: string, headers: Record<string, string>) {
  const [method = "", path = ""] = line.split(" ");
  const answer = await ask(engine.url + path, { method, headers });
  return { status: answer.status, headers: answer.headers, text: answer.body.toString() };
}

const SCHEMA = "GET /v1/catalog/schema";
const PATH = "/v1/admin/databases/default/tables/t";
const TABLE = `POST ${PATH}`;

describe("while authentication is off", () => {
  test("the edge says which pages may call, and its peers go by it", async () => {
    const peer = await start({});
    const edge = await startEdge([peer.url], {
      ENGINE_CORS_ALLOWED_ORIGINS: APP,
      ENGINE_HTTP_ALLOWED_HOSTS: "edge.example",
    });
    const allowed = { origin: APP, host: "edge.example", "sec-fetch-site": "cross-site" };
    const answered = await call(edge, TABLE, allowed);
    expect(answered).toMatchObject({ status: 200, headers: { "access-control-allow-origin": APP } });
    expect(answered.text).toContain('"created":true');
    // The peer, asked without the edge, knows nothing of that page.
    expect((await call(peer, TABLE, { origin: APP })).status).toBe(403);

    for (const headers of [
      { origin: "http://evil.example" },
      { origin: "null" },
      { host: "rebound.example" },
      { "sec-fetch-site": "cross-site" },
    ]) {
      const refused = await call(edge, SCHEMA, headers);
      expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("forbidden")]);
      expect(refused.headers["access-control-allow-origin"]).toBeUndefined();
    }
  });

  test("a page cannot pass for one that an edge has judged", async () => {
    const peer = await start({});
    for (const via of ["1.1 squid", "1.1 engine-proxy", "1.0 fred, 1.1 p.example.net"]) {
      expect((await call(peer, SCHEMA, { origin: "http://evil.example", via })).status).toBe(403);
    }
  });

  test("the edge's own pages call it, and what it passes on is said once", async () => {
    const peer = await start({});
    const edge = await startEdge([peer.url]);
    const answered = await call(edge, TABLE, { origin: edge.url });
    expect(answered.status).toBe(200);
    expect(answered.headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "x-frame-options": "DENY",
      "cross-origin-resource-policy": "same-origin",
    });
  });

  test("peers are asked by names that are not theirs", async () => {
    const peer = await start({});
    // As an edge asks a peer that it knows by a name of the cluster's network.
    const named = { host: "query.svc.cluster:8080" };
    const via = "1.1 engine-0192d1f0-5b6c-7000-8000-000000000000";
    expect((await call(peer, TABLE, { ...named, via })).status).toBe(200);
    expect((await call(peer, TABLE, named)).status).toBe(403);
    expect((await call(peer, "GET /health", named)).status).toBe(200);
  });
});

test("peers that trust the edge count failures for the client, and not for the edge", async () => {
  const tokens = { ENGINE_AUTH_TOKENS: "sesame:admin" };
  const peer = await start({ ...tokens, ENGINE_TRUSTED_PROXIES: "127.0.0.1" });
  const edge = await startEdge([peer.url], tokens);
  const ask = (from: string, token: string) =>
    call(edge, SCHEMA, { authorization: `Bearer ${token}`, "x-forwarded-for": from });
  // What comes from here is from 127.0.0.1 itself, a trusted proxy too: its header says who asked it.
  await Promise.all(Array.from({ length: 120 }, () => ask("203.0.113.9", "wrong")));
  expect((await ask("203.0.113.9", "wrong")).status).toBe(429);
  expect((await ask("203.0.113.10", "wrong")).status).toBe(401);
  for (const from of ["203.0.113.9", "203.0.113.10"]) expect((await ask(from, "sesame")).status).toBe(200);
});

test("an edge with a certificate tells its peers, and browsers, that it speaks TLS", async () => {
  const { certPath, keyPath } = await makeCertificate(certificateFolder(), "edge");
  trustCertificate(readFileSync(certPath, "utf8"));
  const tls = { ENGINE_TLS_CERT: certPath, ENGINE_TLS_KEY: keyPath };
  const peer = await start(tls);
  const edge = await startEdge([peer.url], { ...tls, NODE_EXTRA_CA_CERTS: certPath });
  const send = (headers: Record<string, string>) => fetch(edge.url + PATH, { method: "POST", headers });
  const answered = await send({ Origin: edge.url });
  expect([answered.status, answered.headers.get("strict-transport-security")]).toEqual([200, "max-age=31536000"]);
  expect((await send({ Origin: edge.url.replace("https", "http") })).status).toBe(403);
  const plain = await startEdge([peer.url], { NODE_EXTRA_CA_CERTS: certPath });
  const over = await call(plain, TABLE, {});
  // The peer speaks TLS; this edge does not.
  expect([over.status, over.headers["strict-transport-security"]]).toEqual([200, undefined]);
});

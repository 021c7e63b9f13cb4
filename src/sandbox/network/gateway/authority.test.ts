import { X509Certificate } from "node:crypto";
import { createServer, connect } from "node:tls";
import { once } from "node:events";
import { expect, it } from "vitest";
import { ManualClock, systemClock } from "../../../core/clock.ts";
import { systemRandom } from "../../../core/random.ts";
import { listen } from "../egress/proxy.test-kit.ts";
import { GatewayAuthority } from "./authority.ts";

const sources = { clock: systemClock, random: systemRandom };

/** The certificate that a client sees which trusts the authority alone. */
async function shownBy(authority: GatewayAuthority, host: string): Promise<X509Certificate> {
  const context = await authority.contextFor(host);
  const server = createServer({ SNICallback: (_name, done) => done(null, context) });
  const port = await listen(server);
  const client = connect({ port, host: "127.0.0.1", servername: host, ca: authority.certificate });
  await once(client, "secureConnect");
  const shown = client.getPeerX509Certificate();
  client.destroy();
  server.close();
  if (shown === undefined) throw new Error("there is no certificate");
  return shown;
}

it("signs for a name of its own key, and for nothing else", async () => {
  const authority = await GatewayAuthority.make(sources);
  const own = new X509Certificate(authority.certificate);
  const shown = await shownBy(authority, "api.test");
  expect([own.ca, own.verify(own.publicKey), own.publicKey.asymmetricKeyDetails?.namedCurve]).toEqual([
    true,
    true,
    "prime256v1",
  ]);
  expect([shown.ca, shown.verify(own.publicKey), shown.checkIssued(own)]).toEqual([false, true, true]);
  expect([shown.checkHost("api.test"), shown.checkHost("other.test")]).toEqual(["api.test", undefined]);
  expect(shown.subjectAltName).toBe("DNS:api.test");
  const other = await GatewayAuthority.make(sources);
  expect(new X509Certificate(other.certificate).subject).not.toBe(own.subject);
  expect(shown.verify(new X509Certificate(other.certificate).publicKey)).toBe(false);
});

it("goes on from what was kept", async () => {
  const made = await GatewayAuthority.make(sources);
  const kept = made.export();
  const opened = GatewayAuthority.open(kept, sources);
  expect([opened.certificate, opened.export()]).toEqual([made.certificate, kept]);
  const shown = await shownBy(opened, "api.test");
  expect(shown.verify(new X509Certificate(made.certificate).publicKey)).toBe(true);
  const other = (await GatewayAuthority.make(sources)).export();
  expect(() => GatewayAuthority.open({ ...kept, key: other.key }, sources)).toThrow("do not belong together");
  expect(() => GatewayAuthority.open({ key: "", certificate: "" }, sources)).toThrow(/PEM/i);
});

it("makes the certificate of a host once, and anew before it ends", async () => {
  const clock = new ManualClock(systemClock.nowMs());
  const authority = await GatewayAuthority.make({ clock, random: systemRandom });
  const first = authority.contextFor("api.test");
  clock.advance(3 * 86_400_000);
  expect(authority.contextFor("api.test")).toBe(first);
  expect(authority.contextFor("other.test")).not.toBe(first);
  clock.advance(2 * 86_400_000);
  const second = authority.contextFor("api.test");
  expect(second).not.toBe(first);
  await Promise.all([first, second]);
});

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ADMIN, by, openAccess, type Access } from "../../auth/access.test-kit.ts";
import type { Caller } from "../../auth/caller.ts";
import type { Catalog, Lease } from "../../catalog/catalog.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { Credentials } from "../credentials.ts";
import { keyringOf } from "../../auth/sealing/keyring.ts";
import type { CredentialValue } from "../kinds.ts";
import type { OAuthApps } from "./grant.ts";
import { APP, at, directoryOf } from "./provider.test-kit.ts";
import { OAuthTokens } from "./tokens.ts";

let access: Access;
let credentials: Credentials;
let server: Server;
let url: string;
let answers: (() => { status: number; body: object })[];
let asked: Record<string, string>[];
/** Leases that others hold. */
let taken: Set<string>;
let released: number;

beforeEach(async () => {
  access = await openAccess();
  [answers, asked, taken, released] = [[], [], new Set(), 0];
  const { records, audit, clock } = access;
  const keyring = keyringOf(randomBytes(32).toString("base64"), []);
  credentials = new Credentials({
    records,
    audit,
    keyring,
    random: systemRandom,
    newId: uuidV7Source(clock, systemRandom),
  });
  server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      asked.push(Object.fromEntries(new URLSearchParams(body)));
      const answer = answers.shift()?.();
      if (answer === undefined) response.destroy();
      else response.writeHead(answer.status).end(JSON.stringify(answer.body));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.close();
  await access.close();
});

/** Leases as the catalog gives them; `nodes.pg.test.ts` and `tokens.pg.test.ts` have the real ones. */
const leases: Pick<Catalog, "acquireLease" | "releaseLease"> = {
  acquireLease: (name, holder) =>
    Promise.resolve(taken.has(name) ? undefined : taken.add(name) && { name, holder, fence: 1 }),
  releaseLease: ({ name }: Lease) => {
    released++;
    taken.delete(name);
    return Promise.resolve();
  },
};

function tokens(apps: OAuthApps = { google: APP }, store = credentials): OAuthTokens {
  const { clock } = access;
  return new OAuthTokens({
    credentials: store,
    catalog: leases,
    newId: uuidV7Source(clock, systemRandom),
    clock,
    log: silentLog,
    providers: directoryOf(clock, { google: at(url) }, apps),
  });
}

type OAuth2 = Extract<CredentialValue, { kind: "oauth2" }>;

async function stored(lastsMs: number | undefined, extra: Partial<OAuth2> = {}, caller = ADMIN): Promise<string> {
  const expires = lastsMs === undefined ? {} : { expires_at: new Date(access.clock.nowMs() + lastsMs).toISOString() };
  const value = { kind: "oauth2", access_token: "a-1", refresh_token: "r-1", provider: "google", ...expires, ...extra };
  return (await credentials.create({ label: "x", value: value as OAuth2 }, by(caller))).id;
}

const granted = (body: object) => () => ({ status: 200, body: { access_token: "a-2", expires_in: 3600, ...body } });
const refusing = (error: string) => () => ({ status: 400, body: { error } });

describe("an access token", () => {
  test("is given out while it lasts a minute, and without an end always", async () => {
    expect(await tokens().fresh(await stored(60_000), ADMIN)).toBe("a-1");
    expect(await tokens().fresh(await stored(undefined), ADMIN)).toBe("a-1");
    expect(asked).toEqual([]);
  });

  test("is renewed before that, and what the provider leaves out stays", async () => {
    const id = await stored(59_999, { scope: "s" });
    answers = [granted({ refresh_token: "r-2" })];
    expect(await tokens().fresh(id, ADMIN)).toBe("a-2");
    expect(asked).toMatchObject([{ grant_type: "refresh_token", refresh_token: "r-1", client_id: APP.clientId }]);
    const { value, credential } = await credentials.reveal(id, ADMIN);
    expect(value).toMatchObject({ access_token: "a-2", refresh_token: "r-2", scope: "s", provider: "google" });
    expect(credential.expiresAtMs).toBe(access.clock.nowMs() + 3_600_000);
    expect([taken.size, released]).toEqual([0, 1]);
    access.clock.advance(3_600_000);
    answers = [granted({})];
    await tokens().fresh(id, ADMIN);
    expect((await credentials.reveal(id, ADMIN)).value).toMatchObject({ refresh_token: "r-2" });
    expect(asked[1]).toMatchObject({ refresh_token: "r-2" });
  });

  test("is renewed once for all who ask at once, by the app of its grant", async () => {
    const id = await stored(0, { client_id: "own", client_secret: "own-secret" });
    answers = [granted({})];
    const one = tokens({});
    const all = await Promise.all(Array.from({ length: 50 }, () => one.fresh(id, ADMIN)));
    expect(new Set(all)).toEqual(new Set(["a-2"]));
    expect(asked).toMatchObject([{ client_id: "own", client_secret: "own-secret" }]);
    expect((await credentials.reveal(id, ADMIN)).value).toMatchObject({
      client_id: "own",
      client_secret: "own-secret",
    });
  });

  test("is renewed when the provider's API refuses it, and only that one", async () => {
    const id = await stored(undefined);
    answers = [granted({})];
    expect(await tokens().fresh(id, ADMIN, "a-0")).toBe("a-1");
    expect(await tokens().fresh(id, ADMIN, "a-1")).toBe("a-2");
    expect(await tokens().fresh(id, ADMIN, "a-1")).toBe("a-2");
    expect(asked).toHaveLength(1);
  });

  test("is for those who may use the credential, also while another renews it", async () => {
    const scoped = (name: string): Caller => ({ ...ADMIN, databases: [name] });
    const id = await stored(0, {}, scoped("logs"));
    answers = [granted({})];
    const one = tokens();
    const [theirs, others] = await Promise.allSettled([one.fresh(id, scoped("logs")), one.fresh(id, scoped("web"))]);
    expect(theirs).toMatchObject({ status: "fulfilled", value: "a-2" });
    expect(others).toMatchObject({ status: "rejected", reason: { code: "not_found" } });
  });
});

describe("a renewal", () => {
  test("that the provider refuses for good marks the credential, and everyone is told to connect again", async () => {
    const id = await stored(0);
    answers = [refusing("invalid_grant")];
    const one = tokens();
    const all = await Promise.allSettled(Array.from({ length: 10 }, () => one.fresh(id, ADMIN)));
    for (const outcome of all) expect(outcome).toMatchObject({ status: "rejected", reason: { code: "conflict" } });
    expect(await credentials.get(id, ADMIN)).toMatchObject({ status: "refresh_failed", statusDetail: "invalid_grant" });
    await expect(one.fresh(id, ADMIN)).rejects.toThrow(/invalid_grant.*connect it again/);
    expect(asked).toHaveLength(1);
    expect(taken.size).toBe(0);
  });

  test.each([
    ["a broken connection", undefined],
    ["an app that is refused", refusing("invalid_client")],
    ["a provider in trouble", () => ({ status: 500, body: { error: "invalid_grant" } })],
  ])("that fails for %s marks nothing, and the next may succeed", async (_, answer) => {
    const id = await stored(0);
    answers = answer === undefined ? [] : [answer];
    await expect(tokens().fresh(id, ADMIN)).rejects.toMatchObject({ code: "unavailable" });
    expect(await credentials.get(id, ADMIN)).toMatchObject({ status: "ok" });
    expect(taken.size).toBe(0);
    answers = [granted({})];
    expect(await tokens().fresh(id, ADMIN)).toBe("a-2");
  });

  test.each([
    ["no_refresh_token", { refresh_token: undefined }],
    ["unknown_provider", { provider: undefined }],
  ])("that is not possible marks the credential: %s", async (statusDetail, extra) => {
    const id = await stored(0, extra);
    await expect(tokens().fresh(id, ADMIN)).rejects.toMatchObject({ code: "conflict" });
    expect(await credentials.get(id, ADMIN)).toMatchObject({ status: "refresh_failed", statusDetail });
  });

  test("needs the app of the grant, and a credential of that kind", async () => {
    await expect(tokens({}).fresh(await stored(0), ADMIN)).rejects.toMatchObject({
      code: "not_configured",
      message: expect.stringContaining("ENGINE_OAUTH_GOOGLE_CLIENT_ID") as string,
    });
    const ofNobody = await stored(0, { provider: "nobody" });
    await expect(tokens().fresh(ofNobody, ADMIN)).rejects.toMatchObject({ code: "not_configured" });
    expect(await credentials.get(ofNobody, ADMIN)).toMatchObject({ status: "ok" });
    const { id } = await credentials.create({ label: "p", value: { kind: "pat", token: "t" } }, by(ADMIN));
    await expect(tokens().fresh(id, ADMIN)).rejects.toMatchObject({ code: "conflict" });
  });

  test("waits for the process that holds the lease, takes its result, and gives up in time", async () => {
    const id = await stored(0);
    taken.add(`oauth-refresh/${id}`);
    const waiting = tokens().fresh(id, ADMIN);
    await settle(3);
    const { version } = await credentials.reveal(id, ADMIN);
    const theirs: OAuth2 = { kind: "oauth2", access_token: "theirs", provider: "google" };
    expect(await credentials.replace(id, version, theirs, by(ADMIN))).toBe(true);
    const [token] = await Promise.all([waiting, settle(20)]);
    expect(token).toBe("theirs");
    expect(asked).toEqual([]);
    const other = await stored(0);
    taken.add(`oauth-refresh/${other}`);
    const late = tokens().fresh(other, ADMIN);
    await Promise.all([expect(late).rejects.toMatchObject({ code: "unavailable" }), settle(80)]);
    const next = await stored(0);
    taken.add(`oauth-refresh/${next}`);
    const freed = tokens().fresh(next, ADMIN);
    await settle(3);
    taken.delete(`oauth-refresh/${next}`);
    answers = [granted({})];
    expect((await Promise.all([freed, settle(20)]))[0]).toBe("a-2");
  });

  test("stores what it was given although the catalog fails at first", async () => {
    const id = await stored(0);
    answers = [granted({ refresh_token: "r-2" })];
    let failures = 2;
    class Flaky extends Credentials {
      override async replace(...args: Parameters<Credentials["replace"]>): Promise<boolean> {
        if (failures-- > 0) throw new Error("the database is away");
        return await super.replace(...args);
      }
    }
    const { records, audit, clock } = access;
    const newId = uuidV7Source(clock, systemRandom);
    const key = randomBytes(32).toString("base64");
    const flaky = new Flaky({ records, audit, newId, random: systemRandom, keyring: keyringOf(key, []) });
    const value: OAuth2 = {
      kind: "oauth2",
      access_token: "x",
      refresh_token: "r",
      provider: "google",
      expires_at: past(),
    };
    const { id: other } = await flaky.create({ label: "f", value }, by(ADMIN));
    const [token] = await Promise.all([tokens({ google: APP }, flaky).fresh(other, ADMIN), settle(20)]);
    expect(token).toBe("a-2");
    expect((await flaky.reveal(other, ADMIN)).value).toMatchObject({ refresh_token: "r-2" });
    expect([asked.length, failures, id === other]).toEqual([1, -1, false]);
  });
});

const past = () => new Date(access.clock.nowMs() - 1).toISOString();

/** Lets time pass in steps of a second, so that whatever sleeps goes on. */
async function settle(steps: number): Promise<void> {
  for (let i = 0; i < steps; i++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    access.clock.advance(1_000);
  }
}

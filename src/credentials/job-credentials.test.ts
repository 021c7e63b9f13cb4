import { expect, it } from "vitest";
import { AuditLog, type Origin } from "../auth/audit.ts";
import { keyringOf } from "../auth/sealing/keyring.ts";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { seededRandom } from "../core/random.ts";
import { JobKinds } from "../fabric/kinds.ts";
import { Credentials } from "./credentials.ts";
import { JobCredentials } from "./job-credentials.ts";
import type { CredentialValue } from "./kinds.ts";

const OWNER = { subject: "engine", kind: "internal", role: "admin", databases: ["a"] } as const;
const HOLD = { jobId: "j", holder: "h", fence: 1 };
const ORIGIN: Origin = { caller: { subject: "h", kind: "internal" }, address: "", requestId: "" };
const ENGINE = { holder: "engine", origin: ORIGIN } as const;

/** A store in which one job names everything that is stored before it is asked. */
async function storeOf(...values: CredentialValue[]) {
  const clock = new ManualClock();
  const random = seededRandom(1);
  const newId = uuidV7Source(clock, random);
  const { records } = openMemoryCatalog(clock).catalog;
  const audit = new AuditLog(records, newId);
  const credentials = new Credentials({ records, newId, random, audit, keyring: keyringOf("x".repeat(32), []) });
  const origin = { ...ORIGIN, caller: { ...OWNER, subject: "ann" } };
  const ids: string[] = [];
  for (const value of values) ids.push((await credentials.create({ label: "l", value }, origin)).id);
  const renewed: unknown[] = [];
  const secrets = new JobCredentials({
    credentials,
    audit,
    fabric: {
      kinds: new JobKinds([]),
      leasedJob: async () => ({ id: HOLD.jobId, kind: "x.k", owner: OWNER, credentials: ids }),
    },
    tokens: {
      fresh: async (id, caller) => {
        renewed.push([id, caller.databases]);
        const { version } = await credentials.reveal(id, caller);
        await credentials.replace(id, version, { ...grant, access_token: "new" }, ORIGIN);
        return "new";
      },
    },
  });
  return { secrets, ids, renewed, audit };
}

const grant = { kind: "oauth2", access_token: "old", refresh_token: "r", provider: "google" } as const;

it("renews what ends soon before it is given away, in the scope of the job's owner", async () => {
  const { secrets, ids, renewed } = await storeOf(grant);
  expect(await secrets.reveal(HOLD, ids[0] ?? "", ENGINE)).toMatchObject({ access_token: "new" });
  expect(renewed).toEqual([[ids[0], ["a"]]]);
});

it("gives the rest as it is, and each time is on record", async () => {
  const token: CredentialValue = { kind: "oauth2", access_token: "t" };
  const pat: CredentialValue = { kind: "pat", token: "p" };
  const { secrets, ids, renewed, audit } = await storeOf(token, pat);
  expect(await secrets.reveal(HOLD, ids[0] ?? "", ENGINE)).toEqual(token);
  expect(await secrets.reveal(HOLD, ids[1] ?? "", ENGINE)).toEqual(pat);
  expect(renewed).toEqual([]);
  await expect(secrets.reveal(HOLD, "another", ENGINE)).rejects.toMatchObject({ code: "not_found" });
  const entries = await audit.list({ limit: 10, action: "credential.reveal" });
  expect(entries.map(({ target }) => target)).toEqual(ids.toReversed());
});

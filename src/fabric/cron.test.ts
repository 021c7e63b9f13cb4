import { describe, expect, it } from "vitest";
import { ticksOf, type Timing } from "./cron.ts";

const at = (text: string) => Date.parse(text);
const text = (atMs: number | undefined) => (atMs === undefined ? undefined : new Date(atMs).toISOString());

/** The first ticks after a time. */
function following(timing: Timing, from: string, count: number): (string | undefined)[] {
  const ticks = ticksOf(timing);
  const found: number[] = [];
  for (let atMs: number | undefined = at(from); found.length < count; found.push(atMs)) {
    atMs = ticks.after(atMs);
    if (atMs === undefined) break;
  }
  return found.map(text);
}

const berlin = (cron: string) => ({ cron, timeZone: "Europe/Berlin" });

describe("ticks by a cron expression", () => {
  it("come at the local time of the zone, after the time asked for", () => {
    expect(following(berlin("30 8 * * MON-FRI"), "2026-01-02T07:30:00Z", 2)).toEqual([
      "2026-01-05T07:30:00.000Z",
      "2026-01-06T07:30:00.000Z",
    ]);
    expect(following({ cron: "@daily", timeZone: "UTC" }, "2026-01-01T00:00:00.001Z", 1)).toEqual([
      "2026-01-02T00:00:00.000Z",
    ]);
    expect(following({ cron: "*/20 * * * * *", timeZone: "UTC" }, "2026-01-01T00:00:00Z", 2)).toEqual([
      "2026-01-01T00:00:20.000Z",
      "2026-01-01T00:00:40.000Z",
    ]);
  });

  it("come once on the day on which their time does not exist, right after the gap", () => {
    const days = ["2026-03-28T01:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"];
    expect(following(berlin("30 2 * * *"), "2026-03-28T00:00:00Z", 3)).toEqual(days);
    expect(following(berlin("30 2,14 * * *"), "2026-03-29T00:00:00Z", 2)).toEqual([
      "2026-03-29T01:00:00.000Z",
      "2026-03-29T12:30:00.000Z",
    ]);
  });

  it("come once on the day on which their time comes twice", () => {
    expect(following(berlin("30 2 * * *"), "2026-10-24T12:00:00Z", 2)).toEqual([
      "2026-10-25T00:30:00.000Z",
      "2026-10-26T01:30:00.000Z",
    ]);
  });

  it("come steadily through both changes where the expression has a step", () => {
    const halves = (from: string) => following(berlin("*/30 * * * *"), from, 8).map((one) => at(one ?? ""));
    for (const from of ["2026-03-28T23:30:00Z", "2026-10-24T23:00:00Z"]) {
      expect(halves(from)).toEqual(Array.from({ length: 8 }, (_, i) => at(from) + (i + 1) * 1_800_000));
    }
  });

  it("are the same seen from later", () => {
    for (const timing of [berlin("30 2 * * *"), berlin("*/30 * * * *"), { everyMs: 5_000 }]) {
      for (const from of ["2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"]) {
        const forward = following(timing, from, 60);
        const last = at(forward.at(-1) ?? "");
        expect(ticksOf(timing).upTo(last, 60).map(text)).toEqual(forward);
        expect(
          ticksOf(timing)
            .upTo(last - 1, 59)
            .map(text),
        ).toEqual(forward.slice(0, -1));
      }
    }
  });

  it("may be over", () => {
    expect(ticksOf({ cron: "0 0 30 2 *", timeZone: "UTC" }).after(0)).toBeUndefined();
    expect(ticksOf({ cron: "0 0 30 2 *", timeZone: "UTC" }).upTo(at("2026-01-01T00:00:00Z"), 5)).toEqual([]);
  });

  it("refuses what is no expression, and no time zone", () => {
    const refusal = (cron: string, timeZone = "UTC") => {
      try {
        ticksOf({ cron, timeZone });
      } catch (error) {
        return error;
      }
      return undefined;
    };
    const bad = [
      "",
      "* * * *",
      "* * * * * * *",
      "61 * * * *",
      "2026-01-01T00:00:00",
      "? * * * *",
      "@reboot",
      "a b c d e",
    ];
    for (const cron of bad) expect([cron, refusal(cron)]).toMatchObject([cron, { code: "bad_request_body" }]);
    expect(refusal("* * * * *", "Nowhere/Town")).toMatchObject({ message: /time zone "Nowhere\/Town"/ });
    expect(refusal("* * * * *", "Asia/Kolkata")).toBeUndefined();
  });
});

describe("ticks every so often", () => {
  it("lie on multiples since 1970", () => {
    expect(following({ everyMs: 3_600_000 }, "2026-01-01T00:10:00Z", 2)).toEqual([
      "2026-01-01T01:00:00.000Z",
      "2026-01-01T02:00:00.000Z",
    ]);
    expect(following({ everyMs: 3_600_000 }, "2026-01-01T01:00:00Z", 1)).toEqual(["2026-01-01T02:00:00.000Z"]);
  });
});

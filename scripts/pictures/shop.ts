/** A shop of many requests, made up but the same each time: what the pictures of the pages show. */

const MINUTE_MS = 60_000;
const HOURS = 6;

const ROUTES = [
  { route: "GET /products", share: 0.34, ms: 28 },
  { route: "GET /products/:id", share: 0.27, ms: 19 },
  { route: "GET /search", share: 0.16, ms: 64 },
  { route: "POST /cart", share: 0.12, ms: 41 },
  { route: "POST /checkout", share: 0.07, ms: 180 },
  { route: "GET /orders", share: 0.04, ms: 52 },
] as const;
const REGIONS = ["eu-west", "eu-north", "us-east", "ap-south"] as const;

/** Numbers from 0 to 1 (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The last hours of requests, one JSON object on a line: busier and calmer by turns, with one bad quarter of an hour. */
export function requestsUntil(endMs: number): string {
  const next = numbers(20_26);
  const one = <T>(of: readonly T[]): T => of[Math.floor(next() * of.length)] as T;
  const lines: string[] = [];
  for (let minute = -HOURS * 60; minute < 0; minute++) {
    const isBad = minute >= -95 && minute < -80;
    const count = Math.round(70 + 34 * Math.sin(minute / 48) + 12 * Math.sin(minute / 9) + next() * 18);
    for (let i = 0; i < count; i++) {
      const { route, ms } = routeAt(next());
      const isSlow = next() < (isBad ? 0.35 : 0.04);
      const fails = next() < (isBad && route === "POST /checkout" ? 0.4 : 0.004);
      const status = fails ? 503 : next() < 0.015 ? 404 : route.startsWith("POST") ? 201 : 200;
      const duration = Math.round(ms * (0.5 + next() + (isSlow ? 4 + 9 * next() : 0)) * 10) / 10;
      lines.push(
        JSON.stringify({
          at: new Date(endMs + (minute + (i + next()) / count) * MINUTE_MS).toISOString(),
          route,
          status,
          duration_ms: duration,
          bytes: Math.round(400 + next() ** 3 * 90_000),
          region: REGIONS[Math.min(REGIONS.length - 1, Math.floor(next() ** 1.6 * REGIONS.length))],
          customer: `c-${String(Math.floor(next() ** 2 * 4_000)).padStart(5, "0")}`,
          level: fails ? "error" : isSlow ? "warn" : "info",
          body: fails
            ? `payment provider did not answer within ${one([800, 1_000, 1_200])} ms`
            : `${route} answered ${status} in ${duration} ms`,
        }),
      );
    }
  }
  return lines.join("\n");
}

function routeAt(share: number): (typeof ROUTES)[number] {
  let left = share;
  return ROUTES.find((one) => (left -= one.share) < 0) ?? ROUTES[0];
}

/** Smaller tables beside them. */
export function ordersUntil(endMs: number, count: number): string {
  const next = numbers(33);
  return Array.from({ length: count }, (_order, i) =>
    JSON.stringify({
      at: new Date(endMs - (count - i) * 40_000).toISOString(),
      order_id: 9_007_199_254_740_000 + i,
      total: Math.round((8 + next() ** 2 * 400) * 100) / 100,
      currency: next() < 0.7 ? "EUR" : "USD",
      items: 1 + Math.floor(next() ** 2 * 9),
    }),
  ).join("\n");
}

const sql = (text: string) => [{ language: "sql", text, database: "default" }];
const IN_RANGE = "at BETWEEN $from::TIMESTAMPTZ AND $to::TIMESTAMPTZ AND list_contains($region, region)";

/** What the shop looks at in the morning. */
export const SHOP_BOARD = {
  name: "Shop",
  description: "What customers ask for, and how quickly they get it",
  panels: [
    {
      id: "requests",
      type: "stat",
      title: "Requests",
      grid: { x: 0, y: 0, w: 6, h: 4 },
      options: { calculation: "sum" },
      queries: sql(
        `SELECT time_bucket(INTERVAL '10 minutes', at) AS at, count(*) AS requests FROM requests WHERE ${IN_RANGE} GROUP BY 1 ORDER BY 1`,
      ),
    },
    {
      id: "median",
      type: "stat",
      title: "Median of checkout",
      grid: { x: 6, y: 0, w: 6, h: 4 },
      options: { unit: "ms", calculation: "last" },
      queries: sql(
        `SELECT time_bucket(INTERVAL '10 minutes', at) AS at, round(median(duration_ms)) AS median FROM requests WHERE ${IN_RANGE} AND route = 'POST /checkout' GROUP BY 1 ORDER BY 1`,
      ),
    },
    {
      id: "failed",
      type: "stat",
      title: "Failed",
      grid: { x: 12, y: 0, w: 6, h: 4 },
      options: { unit: "%", calculation: "last" },
      queries: sql(
        `SELECT round(100.0 * count(*) FILTER (status >= 500) / count(*), 2) AS failed FROM requests WHERE ${IN_RANGE}`,
      ),
    },
    {
      id: "sent",
      type: "stat",
      title: "Sent",
      grid: { x: 18, y: 0, w: 6, h: 4 },
      options: { unit: "bytes", calculation: "sum" },
      queries: sql(
        `SELECT time_bucket(INTERVAL '10 minutes', at) AS at, sum(bytes)::DOUBLE AS sent FROM requests WHERE ${IN_RANGE} GROUP BY 1 ORDER BY 1`,
      ),
    },
    {
      id: "rate",
      type: "timeseries",
      title: "Requests in 5 minutes, by route",
      grid: { x: 0, y: 4, w: 15, h: 9 },
      options: { look: "areas" },
      queries: sql(
        `SELECT time_bucket(INTERVAL '5 minutes', at) AS at, route, count(*) AS requests FROM requests WHERE ${IN_RANGE} GROUP BY 1, 2 ORDER BY 1, 2`,
      ),
    },
    {
      id: "regions",
      type: "pie",
      title: "Requests by region",
      grid: { x: 15, y: 4, w: 9, h: 9 },
      options: {},
      queries: sql(`SELECT region, count(*) AS requests FROM requests WHERE ${IN_RANGE} GROUP BY 1 ORDER BY 2 DESC`),
    },
    {
      id: "latency",
      type: "heatmap",
      title: "Requests by duration",
      grid: { x: 0, y: 13, w: 12, h: 8 },
      options: {},
      queries: sql(
        `SELECT time_bucket(INTERVAL '20 minutes', at) AS at, CASE WHEN duration_ms < 20 THEN 'a: < 20 ms' WHEN duration_ms < 60 THEN 'b: < 60 ms' WHEN duration_ms < 200 THEN 'c: < 200 ms' ELSE 'd: slower' END AS duration, count(*) AS requests FROM requests WHERE ${IN_RANGE} GROUP BY 1, 2 ORDER BY 1, 2`,
      ),
    },
    {
      id: "slow",
      type: "bar",
      title: "99th percentile by route",
      grid: { x: 12, y: 13, w: 12, h: 8 },
      options: { unit: "ms" },
      queries: sql(
        `SELECT route, round(quantile_cont(duration_ms, 0.99)) AS p99 FROM requests WHERE ${IN_RANGE} GROUP BY 1 ORDER BY 2 DESC`,
      ),
    },
    {
      id: "errors",
      type: "logs",
      title: "Last errors",
      grid: { x: 0, y: 21, w: 24, h: 7 },
      options: {},
      queries: sql(
        `SELECT at, level, body, region FROM requests WHERE level = 'error' AND ${IN_RANGE} ORDER BY at DESC LIMIT 50`,
      ),
    },
  ],
  settings: {
    variables: [
      {
        name: "region",
        label: "Region",
        type: "list",
        multi: true,
        values: [...REGIONS],
        default: [...REGIONS],
      },
    ],
    time: { from: "now-6h", to: "now" },
    refresh_secs: 60,
  },
};

/** Others, so that the list has some. */
export const OTHER_BOARDS = [
  { name: "Orders", description: "Revenue by hour and currency", panels: SHOP_BOARD.panels.slice(0, 4) },
  { name: "Errors of checkout", description: "For those on call", panels: SHOP_BOARD.panels.slice(4, 6) },
  { name: "Capacity", description: null, panels: [] },
];

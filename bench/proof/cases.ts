import type { ShapeName } from "../support/shapes.ts";

/**
 * Loads that no cost was fitted to: other sizes of bodies, numbers of clients and of tables, shapes in small bodies, and
 * queries beside writes. Rates are about half of what such a machine takes, as a guess of the one who wrote them.
 */
export type Case = {
  name: string;
  mode: "single" | "sync" | "staged";
  shape: ShapeName;
  rowsPerRequest: number;
  requestsPerSecond: number;
  clients: number;
  tables: number;
  /** Cores that each server process may use. */
  quota: number;
  /** Asked of tables that have so many rows before. */
  queries?: { perSecond: number; rowsBefore: number };
};

export const HELD_OUT: readonly Case[] = [
  {
    name: "logs-30",
    mode: "single",
    shape: "logs",
    rowsPerRequest: 30,
    requestsPerSecond: 400,
    clients: 20,
    tables: 6,
    quota: 1,
  },
  {
    name: "wide-300",
    mode: "single",
    shape: "wide",
    rowsPerRequest: 300,
    requestsPerSecond: 30,
    clients: 8,
    tables: 2,
    quota: 0.75,
  },
  {
    name: "nested-60",
    mode: "single",
    shape: "nested",
    rowsPerRequest: 60,
    requestsPerSecond: 180,
    clients: 10,
    tables: 1,
    quota: 1,
  },
  {
    name: "numbers-800",
    mode: "single",
    shape: "numbers",
    rowsPerRequest: 800,
    requestsPerSecond: 60,
    clients: 8,
    tables: 4,
    quota: 1,
  },
  {
    name: "text-200",
    mode: "single",
    shape: "text",
    rowsPerRequest: 200,
    requestsPerSecond: 40,
    clients: 10,
    tables: 2,
    quota: 1,
  },
  {
    name: "logs-5000",
    mode: "single",
    shape: "logs",
    rowsPerRequest: 5_000,
    requestsPerSecond: 12,
    clients: 5,
    tables: 1,
    quota: 1.25,
  },
  {
    name: "wide-1",
    mode: "single",
    shape: "wide",
    rowsPerRequest: 1,
    requestsPerSecond: 500,
    clients: 24,
    tables: 2,
    quota: 0.75,
  },
  {
    name: "text-1",
    mode: "single",
    shape: "text",
    rowsPerRequest: 1,
    requestsPerSecond: 500,
    clients: 12,
    tables: 1,
    quota: 0.5,
  },
  {
    name: "logs-1000-asked",
    mode: "single",
    shape: "logs",
    rowsPerRequest: 1_000,
    requestsPerSecond: 25,
    clients: 8,
    tables: 1,
    quota: 1,
    queries: { perSecond: 3, rowsBefore: 150_000 },
  },
  {
    name: "sync-nested-400",
    mode: "sync",
    shape: "nested",
    rowsPerRequest: 400,
    requestsPerSecond: 25,
    clients: 8,
    tables: 2,
    quota: 0.5,
  },
  {
    name: "staged-logs-2000",
    mode: "staged",
    shape: "logs",
    rowsPerRequest: 2_000,
    requestsPerSecond: 8,
    clients: 8,
    tables: 1,
    quota: 0.5,
  },
  {
    name: "staged-wide-100",
    mode: "staged",
    shape: "wide",
    rowsPerRequest: 100,
    requestsPerSecond: 30,
    clients: 10,
    tables: 2,
    quota: 0.5,
  },
];

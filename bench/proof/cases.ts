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
    name: "logs-100",
    mode: "single",
    shape: "logs",
    rowsPerRequest: 100,
    requestsPerSecond: 300,
    clients: 16,
    tables: 4,
    quota: 1,
  },
  {
    name: "wide-50",
    mode: "single",
    shape: "wide",
    rowsPerRequest: 50,
    requestsPerSecond: 150,
    clients: 12,
    tables: 1,
    quota: 1,
  },
  {
    name: "nested-500",
    mode: "single",
    shape: "nested",
    rowsPerRequest: 500,
    requestsPerSecond: 40,
    clients: 6,
    tables: 2,
    quota: 1,
  },
  {
    name: "numbers-10000",
    mode: "single",
    shape: "numbers",
    rowsPerRequest: 10_000,
    requestsPerSecond: 12,
    clients: 4,
    tables: 1,
    quota: 1,
  },
  {
    name: "text-20",
    mode: "single",
    shape: "text",
    rowsPerRequest: 20,
    requestsPerSecond: 250,
    clients: 24,
    tables: 1,
    quota: 0.75,
  },
  {
    name: "logs-1",
    mode: "single",
    shape: "logs",
    rowsPerRequest: 1,
    requestsPerSecond: 900,
    clients: 40,
    tables: 3,
    quota: 0.75,
  },
  {
    name: "nested-1",
    mode: "single",
    shape: "nested",
    rowsPerRequest: 1,
    requestsPerSecond: 600,
    clients: 20,
    tables: 1,
    quota: 0.5,
  },
  {
    name: "wide-2000",
    mode: "single",
    shape: "wide",
    rowsPerRequest: 2_000,
    requestsPerSecond: 5,
    clients: 3,
    tables: 1,
    quota: 1.25,
  },
  {
    name: "logs-200-asked",
    mode: "single",
    shape: "logs",
    rowsPerRequest: 200,
    requestsPerSecond: 100,
    clients: 16,
    tables: 1,
    quota: 1,
    queries: { perSecond: 5, rowsBefore: 300_000 },
  },
  {
    name: "sync-logs-200",
    mode: "sync",
    shape: "logs",
    rowsPerRequest: 200,
    requestsPerSecond: 50,
    clients: 12,
    tables: 1,
    quota: 0.5,
  },
  {
    name: "staged-nested-1000",
    mode: "staged",
    shape: "nested",
    rowsPerRequest: 1_000,
    requestsPerSecond: 8,
    clients: 6,
    tables: 1,
    quota: 0.5,
  },
  {
    name: "staged-logs-50",
    mode: "staged",
    shape: "logs",
    rowsPerRequest: 50,
    requestsPerSecond: 80,
    clients: 12,
    tables: 2,
    quota: 0.5,
  },
];

import { expect, test } from "vitest";
import { addressSet } from "../config/transport-kinds.ts";
import { clientAddress } from "./client-address.ts";

const TRUSTED = addressSet(["10.0.0.0/8", "fd00::/8", "192.0.2.7"]);

function from(remoteAddress: string, forwarded: string | undefined, trusted = TRUSTED): string {
  const header = (name: string) => (name === "x-forwarded-for" ? forwarded : undefined);
  return clientAddress({ remoteAddress, header }, trusted);
}

test("a header that anybody can write is not believed", () => {
  expect(from("198.51.100.1", "203.0.113.9")).toBe("198.51.100.1");
  expect(from("198.51.100.1", "203.0.113.9", () => false)).toBe("198.51.100.1");
  expect(from("", "203.0.113.9")).toBe("");
});

test("a trusted proxy says who asked it", () => {
  expect(from("10.0.0.1", "203.0.113.9")).toBe("203.0.113.9");
  expect(from("fd00::1", "2001:db8::5")).toBe("2001:db8::5");
  expect(from("192.0.2.7", "203.0.113.9")).toBe("203.0.113.9");
  expect(from("192.0.2.8", "203.0.113.9")).toBe("192.0.2.8");
});

test("what a client wrote before the proxy is not believed, nor what proxies further out wrote of it", () => {
  expect(from("10.0.0.1", "127.0.0.1, 10.9.9.9, 203.0.113.9")).toBe("203.0.113.9");
  expect(from("10.0.0.1", "1.1.1.1,203.0.113.9 , 10.0.0.2,10.0.0.3")).toBe("203.0.113.9");
});

test("where all are trusted it is the first of them", () => {
  expect(from("10.0.0.1", "10.0.0.4, 10.0.0.3")).toBe("10.0.0.4");
});

test("what is no address ends the way: the proxy that wrote it counts", () => {
  for (const entry of [undefined, "", "unknown", "_hidden", "203.0.113", "a, ", "fe80::1%eth0", "1.2.3.4:x"]) {
    expect(from("10.0.0.1", entry)).toBe("10.0.0.1");
  }
  expect(from("10.0.0.1", "203.0.113.9, unknown, 10.0.0.2")).toBe("10.0.0.2");
});

test("ports, brackets and mapped addresses are read as addresses", () => {
  expect(from("10.0.0.1", "203.0.113.9:4711")).toBe("203.0.113.9");
  expect(from("10.0.0.1", "[2001:db8::5]:4711")).toBe("2001:db8::5");
  expect(from("10.0.0.1", "[2001:db8::5]")).toBe("2001:db8::5");
  expect(from("10.0.0.1", "::ffff:203.0.113.9")).toBe("203.0.113.9");
});

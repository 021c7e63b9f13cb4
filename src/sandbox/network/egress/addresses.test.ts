import { expect, it } from "vitest";
import { DialableAddresses } from "./addresses.ts";

const publicOnly = new DialableAddresses([]);

it.each(["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450::1"])(
  "%s may be dialled",
  (address) => {
    expect(publicOnly.has(address)).toBe(true);
  },
);

it.each([
  "0.0.0.0",
  "10.0.0.1",
  "100.64.0.1",
  "127.0.0.1",
  "127.255.255.255",
  "168.63.129.16",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "198.18.0.1",
  "203.0.113.9",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::ffff:169.254.169.254",
  "::127.0.0.1",
  "64:ff9b::a9fe:a9fe",
  "100::1",
  "2001::1",
  "2001:db8::1",
  "2002:7f00:1::1",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "ff02::1",
  "localhost",
  "",
])("%s may not", (address) => {
  expect(publicOnly.has(address)).toBe(false);
});

it("ranges of the operator may be dialled too", () => {
  const addresses = new DialableAddresses(["10.1.0.0/16", "192.168.7.7", "fd00:1::/32"]);
  expect(["10.1.2.3", "192.168.7.7", "fd00:1::5", "::ffff:10.1.2.3"].map((a) => addresses.has(a))).toEqual(
    Array.from({ length: 4 }, () => true),
  );
  expect(["10.2.0.1", "192.168.7.8", "fd00:2::5"].some((a) => addresses.has(a))).toBe(false);
});

it.each(["10.0.0.0/33", "10.0.0.0/8/8", "::/129", "example.com", "10.0.0.0/x", "10.0.0.0/"])(
  "%s is no range",
  (range) => {
    expect(() => new DialableAddresses([range])).toThrow("no range of addresses");
  },
);

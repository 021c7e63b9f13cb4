/** An address as people write it: an IPv4 one that came over an IPv6 socket as IPv4. */
export function textAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}

/** The text of an address of 4 or 16 bytes; empty for anything else. */
export function textOfAddressBytes(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) return "";
  if (bytes.subarray(0, 12).every((byte, i) => byte === (i < 10 ? 0 : 0xff))) return bytes.subarray(12).join(".");
  const groups: string[] = [];
  for (let i = 0; i < 16; i += 2) groups.push((((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0)).toString(16));
  // The longest run of zero groups becomes `::` (RFC 5952); the URL parser does exactly that.
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}

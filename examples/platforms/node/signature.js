// Did one of these keys sign this verdict? Ed25519 over the verdict's canonical JSON (RFC 8785) without `signature`.
import { createPublicKey, verify } from "node:crypto";

// RFC 8785 writes numbers and strings as JavaScript does, and orders names as `sort` does.
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${members.join(",")}}`;
}

export function checkSignature(verdict, publicKeys) {
  const { signature, ...unsigned } = verdict;
  if (!publicKeys.includes(signature?.public_key)) {
    throw new Error(`signature: ${signature?.public_key} is not among the keys that this platform knows`);
  }
  const x = Buffer.from(signature.public_key, "hex").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  if (!verify(null, Buffer.from(canonical(unsigned)), key, Buffer.from(signature.value, "hex"))) {
    throw new Error("signature: it does not hold, so the verdict was changed");
  }
}

<?php
// Did one of these keys sign this verdict? Ed25519 over the verdict's canonical JSON (RFC 8785) without `signature`.
// Verdicts are read with json_decode($text), as objects.

function check_signature(object $verdict, array $public_keys): void
{
    $signature = $verdict->signature ?? null;
    if (!in_array($signature?->public_key, $public_keys, true)) {
        throw new RuntimeException("signature: {$signature?->public_key} is not among the keys that this platform knows");
    }
    $unsigned = clone $verdict;
    unset($unsigned->signature);
    $key = sodium_hex2bin($signature->public_key);
    if (!sodium_crypto_sign_verify_detached(sodium_hex2bin($signature->value), canonical($unsigned), $key)) {
        throw new RuntimeException('signature: it does not hold, so the verdict was changed');
    }
}

function canonical(mixed $value): string
{
    if (is_float($value)) {
        return canonical_number($value);
    }
    if (is_array($value)) {
        return '[' . implode(',', array_map('canonical', $value)) . ']';
    }
    $flags = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_LINE_TERMINATORS | JSON_THROW_ON_ERROR;
    if (!is_object($value)) {
        return json_encode($value, $flags);
    }
    $members = [];
    foreach (get_object_vars($value) as $name => $item) {
        $order = iconv('UTF-8', 'UTF-16BE', (string) $name); // names are in the order of their UTF-16 units
        $members["=$order"] = json_encode((string) $name, $flags) . ':' . canonical($item);
    }
    ksort($members, SORT_STRING);
    return '{' . implode(',', $members) . '}';
}

// As JavaScript writes it: PHP finds the same shortest digits, but sets point and exponent in another way.
function canonical_number(float $number): string
{
    if ($number == 0.0) {
        return '0';
    }
    ini_set('serialize_precision', '-1');
    preg_match('/^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/', json_encode($number), $part);
    [, $sign, $whole] = $part;
    $all = $whole . ($part[3] ?? '');
    $digits = ltrim($all, '0');
    $point = strlen($whole) + (int) ($part[4] ?? 0) - (strlen($all) - strlen($digits));
    $digits = rtrim($digits, '0');
    $count = strlen($digits);
    if ($point > 21 || $point < -5) {
        $fraction = $count > 1 ? '.' . substr($digits, 1) : '';
        return $sign . $digits[0] . $fraction . 'e' . ($point > 0 ? '+' : '-') . abs($point - 1);
    }
    if ($point <= 0) {
        return $sign . '0.' . str_repeat('0', -$point) . $digits;
    }
    return $sign . ($count <= $point ? str_pad($digits, $point, '0') : substr_replace($digits, '.', $point, 0));
}

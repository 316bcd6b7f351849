/* SPDX-License-Identifier: Apache-2.0 */
/* hashes.cl: programs of many inlined calls, as those that compute hashes are: rounds are written out, and each calls small
 * functions. One work-item hashes one message of `size` bytes, which fits one block. */

constant uint K256[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define FOUR(M, i) M((i)) M((i) + 1) M((i) + 2) M((i) + 3)
#define SIXTEEN(M, i) FOUR(M, i) FOUR(M, (i) + 4) FOUR(M, (i) + 8) FOUR(M, (i) + 12)

inline uint big(uint x) { return rotate(x & 0xff00ff00u, 8u) | rotate(x & 0x00ff00ffu, 24u); }
inline uint turn(uint x, uint by) { return rotate(x, 32 - by); }
inline uint choose(uint x, uint y, uint z) { return bitselect(z, y, x); }
inline uint most(uint x, uint y, uint z) { return bitselect(x, y, x ^ z); }
inline uint large0(uint x) { return turn(x, 2) ^ turn(x, 13) ^ turn(x, 22); }
inline uint large1(uint x) { return turn(x, 6) ^ turn(x, 11) ^ turn(x, 25); }
inline uint small0(uint x) { return turn(x, 7) ^ turn(x, 18) ^ x >> 3; }
inline uint small1(uint x) { return turn(x, 17) ^ turn(x, 19) ^ x >> 10; }

/* One of the 64 rounds of SHA-256: the words move by one place, which the last argument counts. */
inline void round256(uint *s, uint *w, int i) {
  if (i >= 16) w[i & 15] += small1(w[(i + 14) & 15]) + w[(i + 9) & 15] + small0(w[(i + 1) & 15]);
  uint a = s[-i & 7], b = s[(1 - i) & 7], c = s[(2 - i) & 7], e = s[(4 - i) & 7];
  uint t = s[(7 - i) & 7] + large1(e) + choose(e, s[(5 - i) & 7], s[(6 - i) & 7]) + K256[i] + w[i & 15];
  s[(3 - i) & 7] += t;
  s[(7 - i) & 7] = t + large0(a) + most(a, b, c);
}

inline void begin256(uint *h) {
  const uint first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (int i = 0; i < 8; i++) h[i] = first[i];
}

inline void block256(uint *h, const uint *block) {
  uint s[8], w[16];
  for (int i = 0; i < 8; i++) s[i] = h[i];
  for (int i = 0; i < 16; i++) w[i] = block[i];
#define ROUND(i) round256(s, w, i);
  SIXTEEN(ROUND, 0)
  SIXTEEN(ROUND, 16) SIXTEEN(ROUND, 32) SIXTEEN(ROUND, 48)
#undef ROUND
      for (int i = 0; i < 8; i++) h[i] += s[i];
}

/* The bytes as words, with what ends a message. */
inline void padded(global const uchar *message, uint size, uint before, bool is_big, uint *block) {
  for (uint i = 0; i < 16; i++) block[i] = 0;
  for (uint i = 0; i < size; i++) block[i / 4] |= (uint)message[i] << 8 * (i & 3);
  block[size / 4] |= 0x80u << 8 * (size & 3);
  if (is_big)
    for (uint i = 0; i < 16; i++) block[i] = big(block[i]);
  block[is_big ? 15 : 14] = (before + size) * 8;
}

kernel void sha256(global const uchar *messages, uint size, global uint *out) {
  size_t item = get_global_id(0);
  uint h[8], block[16];
  begin256(h);
  padded(messages + item * size, size, 0, true, block);
  block256(h, block);
  for (int i = 0; i < 8; i++) out[item * 8 + i] = big(h[i]);
}

/* The states behind the two blocks of a key that HMAC begins with. */
inline void keyed(const uint *key, uint pad, uint *h) {
  uint block[16];
  for (int i = 0; i < 16; i++) block[i] = (i < 8 ? key[i] : 0) ^ pad;
  begin256(h);
  block256(h, block);
}

inline void hmac(const uint *inner, const uint *outer, const uint *message, uint *out) {
  uint block[16] = {0};
  for (int part = 0; part < 2; part++) {
    for (int i = 0; i < 16; i++) block[i] = part == 0 ? message[i] : i < 8 ? out[i] : i == 8 ? 0x80000000u : 0;
    if (part == 1) block[15] = (64 + 32) * 8;
    for (int i = 0; i < 8; i++) out[i] = part == 0 ? inner[i] : outer[i];
    block256(out, block);
  }
}

/* PBKDF2 with HMAC of SHA-256: the password has 32 bytes, the salt `size`, the key 32. */
kernel void pbkdf2(global const uint *passwords, global const uchar *salts, uint size, uint rounds, global uint *out) {
  size_t item = get_global_id(0);
  uint key[8], inner[8], outer[8], block[16], u[8], total[8];
  for (int i = 0; i < 8; i++) key[i] = big(passwords[item * 8 + i]);
  keyed(key, 0x36363636u, inner);
  keyed(key, 0x5c5c5c5cu, outer);
  padded(salts + item * size, size, 64, true, block); /* the salt ends with the block's number, 1, in four bytes */
  hmac(inner, outer, block, u);
  for (int i = 0; i < 8; i++) total[i] = u[i];
  for (uint r = 1; r < rounds; r++) {
    for (int i = 0; i < 16; i++) block[i] = i < 8 ? u[i] : i == 8 ? 0x80000000u : i == 15 ? (64 + 32) * 8 : 0;
    hmac(inner, outer, block, u);
    for (int i = 0; i < 8; i++) total[i] ^= u[i];
  }
  for (int i = 0; i < 8; i++) out[item * 8 + i] = big(total[i]);
}

constant uchar SIGMA[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

inline ulong turn64(ulong x, uint by) { return rotate(x, (ulong)(64 - by)); }

inline void mixed(ulong *v, int a, int b, int c, int d, ulong x, ulong y) {
  v[a] += v[b] + x;
  v[d] = turn64(v[d] ^ v[a], 32);
  v[c] += v[d];
  v[b] = turn64(v[b] ^ v[c], 24);
  v[a] += v[b] + y;
  v[d] = turn64(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = turn64(v[b] ^ v[c], 63);
}

inline void round_blake(ulong *v, const ulong *m, int r) {
  constant const uchar *s = SIGMA[r % 10];
  mixed(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
  mixed(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
  mixed(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
  mixed(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
  mixed(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
  mixed(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
  mixed(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
  mixed(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
}

/* BLAKE2b with 64 bytes of result. */
kernel void blake2b(global const uchar *messages, uint size, global ulong *out) {
  size_t item = get_global_id(0);
  const ulong first[8] = {0x6a09e667f3bcc908ul, 0xbb67ae8584caa73bul, 0x3c6ef372fe94f82bul, 0xa54ff53a5f1d36f1ul,
                          0x510e527fade682d1ul, 0x9b05688c2b3e6c1ful, 0x1f83d9abfb41bd6bul, 0x5be0cd19137e2179ul};
  ulong v[16], m[16], h[8];
  for (int i = 0; i < 16; i++) m[i] = 0;
  for (uint i = 0; i < size; i++) m[i / 8] |= (ulong)messages[item * size + i] << 8 * (i & 7);
  for (int i = 0; i < 8; i++) h[i] = first[i] ^ (i == 0 ? 0x01010040 : 0);
  for (int i = 0; i < 8; i++) v[i] = h[i], v[i + 8] = first[i];
  v[12] ^= size;
  v[14] = ~v[14];
#define ROUND(i) round_blake(v, m, i);
  FOUR(ROUND, 0)
  FOUR(ROUND, 4) FOUR(ROUND, 8)
#undef ROUND
      for (int i = 0; i < 8; i++) out[item * 8 + i] = h[i] ^ v[i] ^ v[i + 8];
}

inline uint step_md5(int i, uint b, uint c, uint d) {
  return i < 16 ? choose(b, c, d) : i < 32 ? choose(d, b, c) : i < 48 ? b ^ c ^ d : c ^ (b | ~d);
}

inline void round_md5(uint *s, const uint *m, int i) {
  const uint by[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
  const int place = i < 16 ? i : i < 32 ? 5 * i + 1 : i < 48 ? 3 * i + 5 : 7 * i;
  uint a = s[0] + step_md5(i, s[1], s[2], s[3]) + SINES[i] + m[place & 15];
  s[0] = s[3];
  s[3] = s[2];
  s[2] = s[1];
  s[1] += rotate(a, by[i / 16 * 4 + (i & 3)]);
}

/* The test defines SINES, which are 64. */
kernel void md5(global const uchar *messages, uint size, global uint *out) {
  size_t item = get_global_id(0);
  const uint first[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  uint s[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}, m[16];
  padded(messages + item * size, size, 0, false, m);
#define ROUND(i) round_md5(s, m, i);
  SIXTEEN(ROUND, 0)
  SIXTEEN(ROUND, 16) SIXTEEN(ROUND, 32) SIXTEEN(ROUND, 48)
#undef ROUND
      for (int i = 0; i < 4; i++) out[item * 4 + i] = first[i] + s[i];
}

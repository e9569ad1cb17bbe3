package fenced

import "math"

// SinCosDegrees are the sine and cosine of an angle in degrees, within one unit in the last place, 0, 1 and -1 exactly where they are. It is
// reduced to at most 45 degrees without rounding, however large it is; it must be finite.
func SinCosDegrees(angle float64) (sin, cos float64) {
	r := math.Mod(angle, 360)               // exact
	quarter := math.RoundToEven(r / 90)     // -4 to 4
	r -= float64(90 * quarter)              // exact: both are multiples of the last place of r
	hi := float64(r * 0x1.1df46a2529d39p-6) // pi/180
	lo := math.FMA(r, 0x1.1df46a2529d39p-6, -hi) + float64(r*0x1.5c1d8becdd291p-62)
	s, c := sinCos(hi, lo)
	switch int(quarter) & 3 {
	case 1:
		s, c = c, -s
	case 2:
		s, c = -s, -c
	case 3:
		s, c = -c, s
	}
	return s + 0, c + 0
}

// sinCos are those of hi + lo, at most pi/4 from 0: the kernels of FreeBSD's library (k_sin.c, k_cos.c).
func sinCos(hi, lo float64) (sin, cos float64) {
	const (
		s1 = -1.66666666666666324348e-01
		s2 = 8.33333333332248946124e-03
		s3 = -1.98412698298579493134e-04
		s4 = 2.75573137070700676789e-06
		s5 = -2.50507602534068634195e-08
		s6 = 1.58969099521155010221e-10

		c1 = 4.16666666666666019037e-02
		c2 = -1.38888888888741095749e-03
		c3 = 2.48015872894767294178e-05
		c4 = -2.75573143513906633035e-07
		c5 = 2.08757232129817482790e-09
		c6 = -1.13596475577881948265e-11
	)
	z := float64(hi * hi)
	w := float64(z * z)
	r := s2 + float64(z*(s3+float64(z*s4))) + float64(float64(z*w)*(s5+float64(z*s6)))
	v := float64(z * hi)
	sin = hi - (float64(z*(float64(0.5*lo)-float64(v*r))) - lo - float64(v*s1))

	r = float64(z*(c1+float64(z*(c2+float64(z*c3))))) + float64(float64(w*w)*(c4+float64(z*(c5+float64(z*c6)))))
	half := float64(0.5 * z)
	w = 1 - half
	cos = w + (((1 - w) - half) + (float64(z*r) - float64(hi*lo)))
	return sin, cos
}
